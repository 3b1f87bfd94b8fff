import { queryOptions, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { api, ApiError, type Schemas, unwrap } from "./client";

export type Deployment = Schemas["deployments.v1.DeploymentDetails"];
export type User = Schemas["identity.v1.User"];

/** Permissions of the contract's GetDeploymentAuthorizedActions. */
export type Action = "deployment:read" | "findings:triage" | "scans:upload" | "settings:manage" | "teams:manage";

export const userQuery = queryOptions({
  queryKey: ["user"],
  staleTime: 5 * 60_000,
  queryFn: async (): Promise<User> => (await unwrap(api.GET("/api/auth/users/current"))).user ?? ({} as User),
});

export const deploymentsQuery = queryOptions({
  queryKey: ["deployments"],
  staleTime: 5 * 60_000,
  queryFn: async (): Promise<Deployment[]> => (await unwrap(api.GET("/api/auth/users/current/deployments"))).orgs,
});

/** The deployment that the address names. Screens below `/$org` render only if it exists. */
export function useDeployment(): Deployment {
  const { org } = useParams({ strict: false });
  const { data } = useSuspenseQuery(deploymentsQuery);
  // Scanners print links with the name of the deployment.
  const found = data.find((one) => one.slug === org) ?? data.find((one) => one.displayName === org);
  if (!found) throw new ApiError("No such organization, or you are not a member of it.", 404, "NOT_FOUND", "");
  return found;
}

/** What the caller may do in the deployment; undefined until known. */
export function useActions(): readonly string[] | undefined {
  const { id } = useDeployment();
  const { data } = useQuery({
    queryKey: ["authorized-actions", id],
    staleTime: 60_000,
    queryFn: () =>
      unwrap(api.GET("/api/agent/deployments/{deploymentId}/authorized_actions", { params: { path: { deploymentId: id ?? "" } } })),
  });
  return data?.authorized_actions;
}

/** Whether the caller may do something. False until known, so that no button appears and vanishes. */
export const useMay = (action: Action): boolean => useActions()?.includes(action) ?? false;
