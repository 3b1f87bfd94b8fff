import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";
import type { PullRequestSearch } from "./search";

export type View = Schemas["scans.v1.GetPullRequestResponse"];
export type Finding = Schemas["scans.v1.PullRequestFinding"];

/** What a pull request adds and what blocks it, with the decisions until now. */
export const pullRequestQuery = (deploymentId: string, { project = "", number, ref }: PullRequestSearch) =>
  queryOptions({
    queryKey: ["pull-request", deploymentId, project, number ?? ref ?? ""],
    refetchInterval: 15_000, // a new scan shows up without a reload
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/deployments/{deploymentId}/pull-request", {
          params: { path: { deploymentId }, query: { project, number, ref } },
          signal,
        }),
      ),
  });
