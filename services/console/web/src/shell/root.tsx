import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, createRoute, Navigate, Outlet } from "@tanstack/react-router";
import type { QueryClient } from "@tanstack/react-query";
import { checklistQuery } from "@/api/checklist";
import { deploymentsQuery } from "@/api/session";
import { Loading, Notice } from "@/parts/states";
import * as texts from "@/texts";
import { RouteFailure } from "./failure";
import { Frame } from "./frame";
import { NotFound } from "./not-found";

export const rootRoute = createRootRouteWithContext<{ queryClient: QueryClient }>()({
  component: Outlet,
  pendingComponent: Loading,
  errorComponent: RouteFailure,
  notFoundComponent: () => <main><NotFound /></main>,
});

/** `/`: the first organization of the caller. Before its first scan, the set-up is what helps. */
export const homeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  loader: ({ context }) => context.queryClient.ensureQueryData(deploymentsQuery),
  component: Home,
});

function Home() {
  const first = useQueryClient().getQueryData(deploymentsQuery.queryKey)?.[0];
  const { data: tasks, isPending } = useQuery({ ...checklistQuery(first?.id ?? ""), enabled: !!first, retry: false });
  const { states } = texts.shell;
  if (!first) return <Notice title={states.noOrganization}>{states.noOrganizationHint}</Notice>;
  if (isPending) return <Loading />;
  const isNew = tasks?.some((task) => task.type === "TASK_TYPE_SCAN_CODE" && task.state !== "TASK_STATE_COMPLETE");
  return <Navigate to={isNew ? "/$org/setup" : "/$org/triage"} params={{ org: first.slug ?? "" }} replace />;
}

/** `/$org`: the frame with the navigation. All screens are below it. */
export const orgRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/$org",
  loader: ({ context }) => context.queryClient.ensureQueryData(deploymentsQuery),
  component: Frame,
  pendingComponent: Loading,
  notFoundComponent: NotFound,
  errorComponent: RouteFailure,
});
