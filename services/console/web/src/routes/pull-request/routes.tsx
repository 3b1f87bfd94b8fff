import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { orgRoute } from "@/shell/root";
import { parseSearch } from "./search";

export const pullRequestRoute = createRoute({
  getParentRoute: () => orgRoute,
  path: "pull-requests",
  validateSearch: parseSearch,
  component: lazyRouteComponent(() => import("./screen")),
});
