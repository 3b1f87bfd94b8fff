import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "@/api/client";
import { useDeployment } from "@/api/session";

export interface Names {
  projects: string[];
  tags: string[];
  teams: string[];
}

const most = 1000;

/** useNames reads what a filter can name: at most the first 1000 of each kind. Others can be typed. */
export function useNames(enabled: boolean): Names {
  const { id: deploymentId = "", slug: deploymentSlug = "" } = useDeployment();
  const { data } = useQuery({
    queryKey: ["names", deploymentId],
    enabled,
    staleTime: 60_000,
    queryFn: async (): Promise<Names> => {
      const params = { path: { deploymentId } };
      const [projects, tags, teams] = await Promise.all([
        unwrap(api.GET("/api/v1/deployments/{deploymentSlug}/projects", { params: { path: { deploymentSlug }, query: { page_size: most } } })),
        unwrap(api.POST("/api/agent/deployments/{deploymentId}/tags/find", { params, body: {} })),
        unwrap(api.POST("/api/permissions/v2/deployments/{deploymentId}/teams/list", { params, body: { limit: String(most) } })),
      ]);
      return {
        projects: projects.projects.map((one) => one.name),
        tags: tags.tags.map((one) => one.name),
        teams: teams.teams.map((one) => one.name),
      };
    },
  });
  return data ?? { projects: [], tags: [], teams: [] };
}
