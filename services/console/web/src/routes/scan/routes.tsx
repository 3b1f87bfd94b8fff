import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { orgRoute } from "@/shell/root";

export const scanRoute = createRoute({
  getParentRoute: () => orgRoute,
  path: "scans/$scanId",
  component: lazyRouteComponent(() => import("./screen")),
});
