import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { orgRoute } from "@/shell/root";
import { parseSearch } from "./search";

export const scansRoute = createRoute({
  getParentRoute: () => orgRoute,
  path: "scans",
  validateSearch: parseSearch,
  component: lazyRouteComponent(() => import("./screen")),
});
