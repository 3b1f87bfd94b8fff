import type { QueryClient } from "@tanstack/react-query";
import { createRouter, parseSearchWith, stringifySearchWith } from "@tanstack/react-router";
import { basePath } from "@/api/base";
import { Loading } from "@/parts/states";
import { apiRoute } from "@/routes/api/routes";
import { chatAppRoute } from "@/routes/chat-app/routes";
import { findingRoute } from "@/routes/finding/routes";
import { integrationsRoute } from "@/routes/integrations/routes";
import { overviewRoute } from "@/routes/overview/routes";
import { projectsRoute } from "@/routes/projects/routes";
import { pullRequestRoute } from "@/routes/pull-request/routes";
import { scanRoute } from "@/routes/scan/routes";
import { scansRoute } from "@/routes/scans/routes";
import { sessionsRoute } from "@/routes/sessions/routes";
import { setupRoute } from "@/routes/setup/routes";
import { signInRoute } from "@/routes/sign-in/routes";
import { triageRoute } from "@/routes/triage/routes";
import { RouteFailure } from "@/shell/failure";
import { homeRoute, orgRoute, rootRoute } from "@/shell/root";
import { valueOf } from "@/shell/search";

const routeTree = rootRoute.addChildren([
  homeRoute,
  signInRoute,
  chatAppRoute,
  orgRoute.addChildren([
    triageRoute,
    findingRoute,
    scansRoute,
    scanRoute,
    pullRequestRoute,
    projectsRoute,
    overviewRoute,
    setupRoute,
    apiRoute,
    sessionsRoute,
    integrationsRoute,
  ]),
]);

/** Makes the router. Screens load when they are opened, or when the pointer rests on a link to them. */
export function newRouter(queryClient: QueryClient) {
  return createRouter({
    routeTree,
    basepath: `${basePath}/console`,
    context: { queryClient },
    defaultPreload: "intent",
    defaultPreloadStaleTime: 0,
    defaultPendingComponent: Loading,
    defaultErrorComponent: RouteFailure,
    parseSearch: parseSearchWith(valueOf),
    stringifySearch: stringifySearchWith(JSON.stringify),
    scrollRestoration: false,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof newRouter>;
  }
}
