import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { orgRoute } from "@/shell/root";

export const sessionsRoute = createRoute({
  getParentRoute: () => orgRoute,
  path: "sessions",
  component: lazyRouteComponent(() => import("./screen")),
});
