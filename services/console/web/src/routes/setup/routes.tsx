import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { orgRoute } from "@/shell/root";

export const setupRoute = createRoute({
  getParentRoute: () => orgRoute,
  path: "setup",
  component: lazyRouteComponent(() => import("./screen")),
});
