import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";
import { isId } from "@/api/id";
import { useDeployment } from "@/api/session";
import type { ProjectsSearch } from "./routes";

export type Repository = Schemas["projects.v1.Repository"];
export type Settings = Schemas["projects.v1.UpdateProjectRequest"];

const pageSize = 100;

/** useRepositories lists projects with their open findings and their freshness, page by page. */
export function useRepositories({ q, tag, archived }: ProjectsSearch) {
  const deploymentId = useDeployment().id ?? "";
  return useInfiniteQuery({
    queryKey: ["repositories", deploymentId, q, tag, archived],
    initialPageParam: "",
    getNextPageParam: (page: Schemas["projects.v1.SearchReposResponse"]) => page.cursor || undefined,
    queryFn: ({ pageParam }) =>
      unwrap(
        api.POST("/api/agent/deployments/{deploymentId}/repos/search", {
          params: { path: { deploymentId } },
          body: { cursor: pageParam, pageSize, includeSummary: true, filters: { search: q, tagId: tag, archived } },
        }),
      ),
  });
}

/** useTags lists the tags of the organization. */
export function useTags() {
  const deploymentId = useDeployment().id ?? "";
  return useQuery({
    queryKey: ["tags", deploymentId],
    staleTime: 60_000,
    queryFn: async () => (await unwrap(api.POST("/api/agent/deployments/{deploymentId}/tags/find", { params: { path: { deploymentId } }, body: {} }))).tags,
  });
}

/** useRepository reads one project: what the list shows, and its settings. */
export function useRepository(id: string) {
  const { id: deploymentId = "", slug: deploymentSlug = "" } = useDeployment();
  return useQuery({
    queryKey: ["repository", deploymentId, id],
    queryFn: async () => {
      if (!isId(id)) return null;
      // A project is archived or not, and the filter of the list has one of the two.
      const find = (archived: boolean) =>
        unwrap(
          api.POST("/api/agent/deployments/{deploymentId}/repos/search", {
            params: { path: { deploymentId } },
            body: { pageSize: 1, includeSummary: true, filters: { ids: [id], archived } },
          }),
        );
      const repository = (await find(false)).repos[0] ?? (await find(true)).repos[0];
      if (!repository) return null;
      const settings = await unwrap(
        api.GET("/api/v1/deployments/{deploymentSlug}/projects/{projectName}", { params: { path: { deploymentSlug, projectName: repository.name } } }),
      );
      return { repository, project: settings.project };
    },
  });
}

/** useChange has what can be done to a project. Each change reads the project and the list again. */
export function useChange(repository: Repository) {
  const { id: deploymentId = "", slug: deploymentSlug = "" } = useDeployment();
  const queryClient = useQueryClient();
  const path = { deploymentSlug, projectName: repository.name };
  const refresh = () => Promise.all([
    queryClient.invalidateQueries({ queryKey: ["repository", deploymentId, repository.id] }),
    queryClient.invalidateQueries({ queryKey: ["repositories", deploymentId] }),
    queryClient.invalidateQueries({ queryKey: ["tags", deploymentId] }),
    queryClient.invalidateQueries({ queryKey: ["names", deploymentId] }),
  ]);
  const update = useMutation({
    meta: { handlesErrors: true },
    mutationFn: (body: Settings) => unwrap(api.PATCH("/api/v1/deployments/{deploymentSlug}/projects/{projectName}", { params: { path }, body })),
    onSuccess: refresh,
  });
  const remove = useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/v1/deployments/{deploymentSlug}/projects/{projectName}", { params: { path } })),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ["repositories", deploymentId] }),
  });
  return { update, remove };
}

const allTeams = 1000;

/** useTeams has the teams of the organization, which of them have the project, and a switch. */
export function useTeams(projectId: string) {
  const deploymentId = useDeployment().id ?? "";
  const queryClient = useQueryClient();
  const queryKey = ["project-teams", deploymentId, projectId];
  const list = (repositoryId?: string) =>
    unwrap(
      api.POST("/api/permissions/v2/deployments/{deploymentId}/teams/list", {
        params: { path: { deploymentId } },
        body: { limit: String(allTeams), filter: { repositoryId } },
      }),
    );
  const teams = useQuery({
    queryKey,
    queryFn: async () => {
      const [all, own] = await Promise.all([list(), list(projectId)]);
      const ids = new Set(own.teams.map((team) => team.id));
      return all.teams.map((team) => ({ ...team, has: ids.has(team.id) }));
    },
  });
  const toggle = useMutation({
    mutationFn: ({ teamId, add }: { teamId: string; add: boolean }) =>
      unwrap(
        api.PATCH("/api/permissions/v2/deployments/{deploymentId}/teams/{teamId}", {
          params: { path: { deploymentId, teamId } },
          body: { team: { repositories: [{ repositoryId: projectId, action: add ? "UPDATE_ACTION_ADD" : "UPDATE_ACTION_REMOVE" }] } },
        }),
      ),
    onSettled: () => queryClient.invalidateQueries({ queryKey }),
  });
  return { teams, toggle };
}

/** useBadge has the badge of a project, and what can be done about it. */
export function useBadge(projectId: string) {
  const deploymentId = useDeployment().id ?? "";
  const queryClient = useQueryClient();
  const queryKey = ["badge", deploymentId, projectId];
  const params = { path: { deploymentId, projectId } };
  const refresh = () => queryClient.invalidateQueries({ queryKey });
  const path = "/api/projects/v1/deployments/{deploymentId}/projects/{projectId}/badge" as const;
  const badge = useQuery({ queryKey, queryFn: async () => (await unwrap(api.GET(path, { params }))).badge ?? null });
  const make = useMutation({ mutationFn: () => unwrap(api.POST(path, { params, body: {} })), onSuccess: refresh });
  const remove = useMutation({ mutationFn: () => unwrap(api.DELETE(path, { params })), onSuccess: refresh });
  return { badge, make, remove };
}
