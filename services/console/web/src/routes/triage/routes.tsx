import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { orgRoute } from "@/shell/root";
import { parseSearch } from "./search";

export const triageRoute = createRoute({
  getParentRoute: () => orgRoute,
  path: "triage",
  validateSearch: parseSearch,
  component: lazyRouteComponent(() => import("./screen")),
});
