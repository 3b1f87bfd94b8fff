import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link, Navigate } from "@tanstack/react-router";
import { api, unwrap } from "@/api/client";
import { deploymentsQuery } from "@/api/session";
import { Page } from "@/parts/page";
import { Loading, Notice } from "@/parts/states";
import * as texts from "@/texts";
import { deploymentOf } from "./deployment";
import { chatAppRoute } from "./routes";

const words = texts.integrations.callback;

/** Where Slack sends people back to: ends the installation, and shows the result. */
export default function ChatApp() {
  const { code = "", state = "", error } = chatAppRoute.useSearch();
  const { data: deployments } = useSuspenseQuery(deploymentsQuery);
  const deployment = deployments.find((one) => one.id === deploymentOf(state));
  const ready = !error && code !== "" && deployment !== undefined;
  // The code works once, so this is sent once, whatever the page does.
  const done = useQuery({
    queryKey: ["slack-callback", code],
    enabled: ready,
    retry: false,
    staleTime: Infinity,
    queryFn: () =>
      unwrap(
        api.POST("/api/agent/deployments/{deploymentId}/chat-app/oauth/callback", {
          params: { path: { deploymentId: deployment?.id ?? "" } },
          body: { state, code },
        }),
      ),
  });
  if (done.isSuccess) return <Navigate to="/$org/integrations" params={{ org: deployment?.slug ?? "" }} replace />;
  return (
    <main>
      <Page title={words.title}>
        {ready && done.isPending ? <Loading label={words.pending} /> : (
          <Notice title={error === "access_denied" ? words.denied : words.failed}>
            <p role="alert">{done.error?.message ?? (error === "access_denied" ? words.deniedHint : words.unknown)}</p>
            <p className="mt-2">
              {deployment
                ? <Link to="/$org/integrations" params={{ org: deployment.slug ?? "" }} className="text-accent underline">{words.back}</Link>
                : <Link to="/" className="text-accent underline">{texts.shell.states.backToTriage}</Link>}
            </p>
          </Notice>
        )}
      </Page>
    </main>
  );
}
