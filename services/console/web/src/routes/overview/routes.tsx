import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { orgRoute } from "@/shell/root";
import { parseSearch } from "./period";

export const overviewRoute = createRoute({
  getParentRoute: () => orgRoute,
  path: "overview",
  validateSearch: parseSearch,
  component: lazyRouteComponent(() => import("./screen")),
});
