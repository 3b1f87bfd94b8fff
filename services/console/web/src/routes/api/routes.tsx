import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { orgRoute } from "@/shell/root";

/** What is searched for, and the operation that is shown. */
export interface ReferenceSearch {
  q?: string;
  op?: string;
}

const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

export const apiRoute = createRoute({
  getParentRoute: () => orgRoute,
  path: "api",
  validateSearch: (search: Record<string, unknown>): ReferenceSearch => ({ q: text(search.q), op: text(search.op) }),
  component: lazyRouteComponent(() => import("./screen")),
});
