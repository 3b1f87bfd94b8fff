import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { checklistQuery } from "@/api/checklist";
import { api, type Schemas, unwrap } from "@/api/client";
import { useDeployment } from "@/api/session";

export type Uploaded = Schemas["scans.v1.UploadReportResponse"];
export type Scan = Schemas["scans.v1.ScanPublic"];

const day = 86_400_000;
/** How long a token of this page is valid. */
const validFor = 365 * day;
const watchInterval = 2_000;

/** useToken makes a token that can send results and nothing else. Its value exists only in this page. */
export function useToken() {
  const deploymentId = useDeployment().id ?? "";
  return useMutation({
    mutationFn: async (name: string) => {
      const answer = await unwrap(
        api.POST("/api/tokens/v1/deployments/{deploymentId}/tokens", {
          params: { path: { deploymentId } },
          body: { name, scopes: ["agent"], role: "ORG_ROLE_MEMBER", expiresAt: new Date(Date.now() + validFor).toISOString() },
        }),
      );
      return { value: answer.value, expiresAt: answer.token?.expiresAt, madeAt: answer.token?.createdAt ?? new Date().toISOString() };
    },
  });
}

/** A scan with the name of its project. */
export interface Arrival {
  scan: Scan;
  project: string;
}

/** useArrival watches for the first scan that began after a time. It asks until the scan has ended. */
export function useArrival(since: string | undefined) {
  const deploymentId = useDeployment().id ?? "";
  const queryClient = useQueryClient();
  return useQuery({
    queryKey: ["arrival", deploymentId, since],
    enabled: since !== undefined,
    refetchInterval: ({ state }) => (state.data && !running(state.data.scan) ? false : watchInterval),
    refetchIntervalInBackground: true,
    queryFn: async (): Promise<Arrival | null> => {
      const found = await unwrap(
        api.POST("/api/v1/deployments/{deploymentId}/scans/search", { params: { path: { deploymentId } }, body: { since, limit: 100 } }),
      );
      const scan = found.scans.at(-1); // newest first
      if (!scan) return null;
      const repos = await unwrap(
        api.POST("/api/agent/deployments/{deploymentId}/repos/search", {
          params: { path: { deploymentId } },
          body: { pageSize: 1, filters: { ids: [String(scan.repository_id)] } },
        }),
      );
      if (!running(scan)) void queryClient.invalidateQueries({ queryKey: ["checklist", deploymentId] });
      return { scan, project: repos.repos[0]?.name ?? "" };
    },
  });
}

export const running = (scan: Scan): boolean => scan.status === "SCAN_STATUS_RUNNING" || scan.status === "SCAN_STATUS_PENDING";

/** useUpload sends a report as it is. */
export function useUpload() {
  const { id: deploymentId = "", slug: deploymentSlug = "" } = useDeployment();
  const queryClient = useQueryClient();
  return useMutation({
    meta: { handlesErrors: true },
    mutationFn: ({ file, project, ref }: { file: File; project: string; ref: string }): Promise<Uploaded> =>
      unwrap(
        api.POST("/api/v1/deployments/{deploymentSlug}/reports", {
          params: { path: { deploymentSlug }, query: { project, ref } },
          headers: { "content-type": "application/json", ...(file.name.endsWith(".gz") && { "content-encoding": "gzip" }) },
          body: file as unknown as string,
          bodySerializer: () => file,
        }),
      ),
    onSuccess: () => {
      for (const key of ["checklist", "repositories", "report", "issue-counts", "issue-filters", "issue-groups", "scans", "pull-requests"]) {
        void queryClient.invalidateQueries({ queryKey: [key, deploymentId] });
      }
    },
  });
}

/** useChecklist reads the first steps with an organization. */
export const useChecklist = () => useQuery(checklistQuery(useDeployment().id ?? ""));

/** useDoctor runs the checks of the installation. */
export function useDoctor(enabled: boolean) {
  const deploymentId = useDeployment().id ?? "";
  return useQuery({
    queryKey: ["doctor", deploymentId],
    enabled,
    staleTime: 60_000,
    queryFn: () => unwrap(api.GET("/api/platform/v1/deployments/{deploymentId}/doctor", { params: { path: { deploymentId } } })),
  });
}
