import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, ApiError, type Schemas, unwrap } from "@/api/client";
import type { Deployment } from "@/api/session";
import type { HeldState, ScansSearch } from "./search";

export type Analysis = Schemas["scans.v1.AnalysisFreshness"];
export type HeldCloses = Schemas["scans.v1.HeldCloses"];
export type ScanRow = Schemas["scans.v1.ScanPublic"] & { project: string };
export type Version = Schemas["scans.v1.ScannerVersionCount"];

const pageSize = 100;
/** Other people's scans and decisions show up without a reload. */
const refreshed = { refetchInterval: 30_000, placeholderData: keepPreviousData };

export const summaryQuery = (deploymentId: string, project: string | undefined) =>
  queryOptions({
    queryKey: ["freshness-summary", deploymentId, project ?? ""],
    ...refreshed,
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/deployments/{deploymentId}/freshness/summary", { params: { path: { deploymentId }, query: { project } }, signal })),
  });

export const freshnessQuery = (deploymentId: string, { project, tool, version, state }: ScansSearch) =>
  infiniteQueryOptions({
    queryKey: ["freshness", deploymentId, project ?? "", tool ?? "", version ?? null, state ?? ""],
    ...refreshed,
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET("/api/v1/deployments/{deploymentId}/freshness", {
          params: { path: { deploymentId }, query: { project, tool, scanner_version: version, state: state && [state], cursor: pageParam, limit: pageSize } },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.cursor || undefined,
  });

export const heldQuery = (deploymentSlug: string, state: HeldState) =>
  infiniteQueryOptions({
    queryKey: ["held-closes", deploymentSlug, state],
    ...refreshed,
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET("/api/v1/deployments/{deploymentSlug}/held-closes", {
          params: { path: { deploymentSlug }, query: { state: state === "all" ? undefined : state, cursor: pageParam, limit: pageSize } },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.cursor || undefined,
  });

export const heldFindingsQuery = (deploymentSlug: string, heldClosesId: string) =>
  infiniteQueryOptions({
    queryKey: ["held-findings", deploymentSlug, heldClosesId],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET("/api/v1/deployments/{deploymentSlug}/held-closes/{heldClosesId}", {
          params: { path: { deploymentSlug, heldClosesId }, query: { cursor: pageParam, limit: pageSize } },
          signal,
        }),
      ),
    getNextPageParam: (last) => last.cursor || undefined,
  });

/** Confirms or rejects held closes, and says how many findings it concerned. */
export async function decideHeld(deploymentSlug: string, heldClosesId: string, decision: "confirm" | "reject"): Promise<number> {
  const of = { params: { path: { deploymentSlug, heldClosesId } }, body: {} };
  if (decision === "confirm") return (await unwrap(api.POST("/api/v1/deployments/{deploymentSlug}/held-closes/{heldClosesId}/confirm", of))).closed;
  return (await unwrap(api.POST("/api/v1/deployments/{deploymentSlug}/held-closes/{heldClosesId}/reject", of))).kept;
}

const problems = ["SCAN_STATUS_ERROR", "SCAN_STATUS_NEVER_FINISHED", "SCAN_STATUS_CANCELLED"] as const;

/** Names of projects by id. Scans have only the id. */
async function projectNames(deploymentId: string, ids: string[], signal: AbortSignal): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const body = { filters: { ids }, pageSize: ids.length };
  const answer = await unwrap(api.POST("/api/agent/deployments/{deploymentId}/repos/search", { params: { path: { deploymentId } }, body, signal }));
  return new Map(answer.repos.map((one) => [String(one.id), one.name]));
}

/** The id of a project by its exact name; undefined if there is none that the caller sees. */
async function projectId(deploymentSlug: string, projectName: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const path = { deploymentSlug, projectName };
    const { project } = await unwrap(api.GET("/api/v1/deployments/{deploymentSlug}/projects/{projectName}", { params: { path }, signal }));
    return project && String(project.id);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

export const scansQuery = ({ id: deploymentId = "", slug = "" }: Deployment, { project, branch, full, problems: failed }: ScansSearch) =>
  infiniteQueryOptions({
    queryKey: ["scans", deploymentId, project ?? "", branch ?? "", full ?? false, failed ?? false],
    ...refreshed,
    initialPageParam: "",
    queryFn: async ({ pageParam, signal }) => {
      const repository = project ? await projectId(slug, project, signal) : "0";
      if (!repository) return { cursor: "", scans: [] };
      const body = { repository_id: repository, branch: branch ?? "", is_full_scan: full ?? false, statuses: failed ? [...problems] : [], cursor: pageParam, limit: pageSize };
      const page = await unwrap(api.POST("/api/v1/deployments/{deploymentId}/scans/search", { params: { path: { deploymentId } }, body, signal }));
      const names = await projectNames(deploymentId, [...new Set(page.scans.map((one) => one.repository_id))], signal);
      return { cursor: page.cursor, scans: page.scans.map((one): ScanRow => ({ ...one, project: names.get(one.repository_id) ?? "" })) };
    },
    getNextPageParam: (last) => last.cursor || undefined,
  });

export const pullsQuery = (deploymentId: string, project?: string) =>
  infiniteQueryOptions({
    queryKey: ["pull-requests", deploymentId, project ?? ""],
    ...refreshed,
    initialPageParam: "",
    queryFn: async ({ pageParam, signal }) => {
      try {
        return await unwrap(api.GET("/api/v1/deployments/{deploymentId}/pull-requests", { params: { path: { deploymentId }, query: { project, cursor: pageParam } }, signal }));
      } catch (error) {
        if (project && error instanceof ApiError && error.status === 404) return { cursor: "", pull_requests: [] };
        throw error;
      }
    },
    getNextPageParam: (last) => last.cursor || undefined,
  });
