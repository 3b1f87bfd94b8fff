import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/shell/root";

export const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  component: lazyRouteComponent(() => import("./screen")),
});
