import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "@/api/client";
import type { Calls, Change } from "./decider";
import type { FieldName } from "./fields";
import type { Fetch } from "./pages";
import { type Decision, type Issue, rowOf } from "./rows";
import { orderOf, type Request, type Search, toRequest } from "./search";

const of = (deploymentId: string) => ({ params: { path: { deploymentId } } });

/** Reads pages of the list. */
export const fetchPage = (deploymentId: string, search: Search): Fetch => async (start, limit, signal) => {
  const answer = await unwrap(api.POST("/api/agent/deployments/{deploymentId}/issues", { ...of(deploymentId), body: { ...toRequest(search), ...orderOf(search), ...start, limit }, signal }));
  return { rows: answer.issues.flatMap(({ issue }) => (issue ? [rowOf(issue)] : [])), cursor: answer.cursor };
};

/** Reads some findings again, because somebody changed them. */
export async function fetchIssues(deploymentId: string, ids: string[], withHistory = false): Promise<Issue[]> {
  const body = { filter: { ids }, limit: ids.length, includeActivityHistory: withHistory };
  const answer = await unwrap(api.POST("/api/agent/deployments/{deploymentId}/issues", { ...of(deploymentId), body }));
  return answer.issues.flatMap(({ issue }) => (issue ? [issue] : []));
}

/** Numbers by state, of all states. */
export const countsQuery = (deploymentId: string, search: Search) => {
  const request = toRequest(search, "state");
  return queryOptions({
    queryKey: ["issue-counts", deploymentId, request],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => unwrap(api.POST("/api/agent/deployments/{deploymentId}/issue_counts", { ...of(deploymentId), body: request, signal })),
  });
};

/** Values of a condition with their numbers, within the other conditions. */
export const facetsQuery = (deploymentId: string, search: Search, without?: FieldName) => {
  const request = toRequest(search, without);
  return queryOptions({
    queryKey: ["issue-filters", deploymentId, request],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => unwrap(api.POST("/api/agent/deployments/{deploymentId}/issue_filters", { ...of(deploymentId), body: request, signal })),
  });
};

export const issueKey = (deploymentId: string, id: string) => ["issue", deploymentId, id] as const;

export const issueQuery = (deploymentId: string, id: string) =>
  queryOptions({
    queryKey: issueKey(deploymentId, id),
    staleTime: 30_000,
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/agent/deployments/{deploymentId}/issues/v2/{issueId}", { params: { path: { deploymentId, issueId: id }, query: { includeCodeSnippet: true } }, signal })),
  });

export const viewsQuery = (deploymentId: string) =>
  queryOptions({
    queryKey: ["saved-views", deploymentId],
    staleTime: 60_000,
    queryFn: async () => (await unwrap(api.GET("/api/v1/deployments/{deploymentId}/saved-views", { params: { path: { deploymentId }, query: { limit: 1000 } } }))).views,
  });

/** People of the deployment, for the names behind ids. */
export const peopleQuery = (deploymentId: string) =>
  queryOptions({
    queryKey: ["people", deploymentId],
    staleTime: 5 * 60_000,
    queryFn: async () => {
      const { users } = await unwrap(api.GET("/api/agent/deployments/{deploymentId}/users", of(deploymentId)));
      return new Map(users.map((one) => [String(one.id), one.name || one.email]));
    },
  });

const paramsOf = (change: Change) => ({ triageState: change.state, triageReason: change.reason, note: change.note });

/** The calls behind the keys. */
export const decisionCalls = (deploymentId: string): Calls => ({
  update: async (ids, change, seen) => {
    const body = { filter: { ids }, params: paramsOf(change), seen: [...seen].map(([id, decision]) => seenOf(id, decision)) };
    const answer = await unwrap(api.PATCH("/api/agent/deployments/{deploymentId}/findings/v2", { ...of(deploymentId), body }));
    return { changeId: String(answer.changeId), requested: answer.numExceptionsRequested ?? 0, updated: answer.updatedCount };
  },
  undo: async (changeId) => {
    const answer = await unwrap(api.POST("/api/agent/deployments/{deploymentId}/findings/v2/undo/{changeId}", { params: { path: { deploymentId, changeId } }, body: {} }));
    return { restored: answer.restoredCount, kept: answer.keptCount };
  },
});

const seenOf = (id: string, { state, reason, note }: Decision) => ({ issueId: id, triageState: state, triageReason: reason, note });

/** What a decision about everything that matches would change. */
export const previewBulk = (deploymentId: string, request: Request, change: Change) =>
  unwrap(api.POST("/api/agent/deployments/{deploymentId}/findings/v2/preview", { ...of(deploymentId), body: { ...request, params: paramsOf(change) } }));

export const applyBulk = (deploymentId: string, request: Request, change: Change, previewToken: string) =>
  unwrap(api.PATCH("/api/agent/deployments/{deploymentId}/findings/v2", { ...of(deploymentId), body: { ...request, params: paramsOf(change), previewToken } }));
