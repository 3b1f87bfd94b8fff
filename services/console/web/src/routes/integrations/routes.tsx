import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { orgRoute } from "@/shell/root";

export const integrationsRoute = createRoute({
  getParentRoute: () => orgRoute,
  path: "integrations",
  component: lazyRouteComponent(() => import("./screen")),
});
