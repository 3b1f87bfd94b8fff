import { Link } from "@tanstack/react-router";
import { CircleAlert, LoaderCircle, Lock, SearchX, Unplug } from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import { ApiError, ConnectionError } from "@/api/client";
import * as texts from "@/texts";
import { Button } from "./button";

/** What a screen shows instead of its content: an icon, a title, what to do next. */
export function Notice({ icon, title, children, actions }: {
  icon?: ReactNode;
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <div className="mx-auto flex max-w-md flex-col items-center gap-2 px-4 py-12 text-center">
      {icon && <div className="text-muted" aria-hidden>{icon}</div>}
      <h2 className="text-base font-semibold text-balance">{title}</h2>
      {children && <div className="text-muted text-pretty">{children}</div>}
      {actions && <div className="mt-2 flex flex-wrap justify-center gap-2">{actions}</div>}
    </div>
  );
}

/** The state of a screen whose list is empty. Says why, and what to do next. */
export function Empty(props: { title: string; children?: ReactNode; actions?: ReactNode; icon?: ReactNode }) {
  return <Notice icon={<SearchX size={28} />} {...props} />;
}

/** Loading says so to screen readers at once, and shows itself only if the wait is noticeable. */
export function Loading({ label = texts.shell.states.loading }: { label?: string }) {
  return (
    <div role="status" className="flex items-center justify-center gap-2 py-12 text-muted">
      <LoaderCircle size={18} className="animate-spin" aria-hidden />
      <span>{label}</span>
    </div>
  );
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** An error of the console itself. Its text is for those who mend it, so it is folded away. */
function Broken({ error }: { error: unknown }) {
  const { states } = texts.shell;
  return (
    <div role="alert">
      <Notice
        icon={<CircleAlert size={28} />}
        title={states.errorTitle}
        actions={<Button onClick={() => window.location.reload()}>{states.reload}</Button>}
      >
        <p>{states.broken}</p>
        <details className="mt-2 text-xs">
          <summary className="cursor-pointer">{states.details}</summary>
          <p className="mt-1 font-mono text-2xs wrap-anywhere">{messageOf(error)}</p>
        </details>
      </Notice>
    </div>
  );
}

/** How often a lost connection is tried again, in milliseconds. */
const retryInterval = 5_000;

/** No answer at all. Tries again by itself, and at once when the network is back. */
function Lost({ retry }: { retry?: () => void }) {
  const { states } = texts.shell;
  const latest = useRef(retry);
  latest.current = retry;
  useEffect(() => {
    const again = () => latest.current?.();
    const timer = setInterval(again, retryInterval);
    window.addEventListener("online", again);
    return () => {
      clearInterval(timer);
      window.removeEventListener("online", again);
    };
  }, []);
  return (
    <div role="alert">
      <Notice icon={<Unplug size={28} />} title={states.offline} actions={retry && <Button onClick={retry}>{states.retry}</Button>}>
        <p>{states.offlineHint}</p>
      </Notice>
    </div>
  );
}

/** An answer that was not a success: not allowed, not found, or an error with a way to try again. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const { states } = texts.shell;
  if (error instanceof ConnectionError) return <Lost retry={retry} />;
  if (!(error instanceof ApiError)) return <Broken error={error} />;
  const { status } = error;
  if (status === 403) {
    return (
      <Notice icon={<Lock size={28} />} title={states.forbiddenTitle}>
        <p>{error.message}</p>
        <p>{states.forbiddenHint}</p>
      </Notice>
    );
  }
  if (status === 404) {
    return (
      <Notice icon={<SearchX size={28} />} title={states.notFoundTitle} actions={<Link to="/" className="text-accent underline">{states.backToTriage}</Link>}>
        <p>{states.notFoundHint}</p>
      </Notice>
    );
  }
  return (
    <div role="alert">
      <Notice
        icon={<CircleAlert size={28} />}
        title={states.errorTitle}
        actions={retry && <Button onClick={retry}>{states.retry}</Button>}
      >
        <p>{error.message}</p>
        {error.requestId && (
          <p className="mt-1 font-mono text-2xs">
            {states.requestId} {error.requestId}
          </p>
        )}
      </Notice>
    </div>
  );
}
