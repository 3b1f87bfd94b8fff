import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { orgRoute } from "@/shell/root";

/** The list as its address says it. With an id, one project is shown. */
export interface ProjectsSearch {
  id?: string;
  q?: string;
  tag?: string;
  archived?: boolean;
}

const text = (value: unknown): string | undefined => (typeof value === "string" || typeof value === "number" ? String(value) : undefined) || undefined;

export const projectsRoute = createRoute({
  getParentRoute: () => orgRoute,
  path: "projects",
  validateSearch: (search: Record<string, unknown>): ProjectsSearch => ({
    id: text(search.id),
    q: text(search.q),
    tag: text(search.tag),
    archived: search.archived === true ? true : undefined,
  }),
  component: lazyRouteComponent(() => import("./screen")),
});
