import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";

/** checklistQuery reads which first steps of an organization are done. */
export const checklistQuery = (deploymentId: string) =>
  queryOptions({
    queryKey: ["checklist", deploymentId],
    queryFn: async () =>
      (await unwrap(api.GET("/api/onboarding/deployments/{deploymentId}/checklist", { params: { path: { deploymentId } } }))).taskStatus,
  });
