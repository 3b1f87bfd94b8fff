import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { orgRoute } from "@/shell/root";

export const findingRoute = createRoute({
  getParentRoute: () => orgRoute,
  path: "findings/$issueId",
  component: lazyRouteComponent(() => import("./screen")),
});
