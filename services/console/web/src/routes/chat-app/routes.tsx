import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { deploymentsQuery } from "@/api/session";
import { rootRoute } from "@/shell/root";

/** What Slack adds to the address after somebody has approved the app, or has not. */
export interface ChatAppSearch {
  code?: string;
  state?: string;
  error?: string;
}

const text = (value: unknown): string | undefined => (typeof value === "string" || typeof value === "number" ? String(value) : undefined) || undefined;

export const chatAppRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/chat-app",
  validateSearch: (search: Record<string, unknown>): ChatAppSearch => ({ code: text(search.code), state: text(search.state), error: text(search.error) }),
  loader: ({ context }) => context.queryClient.ensureQueryData(deploymentsQuery),
  component: lazyRouteComponent(() => import("./screen")),
});
