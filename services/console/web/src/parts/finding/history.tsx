import { When } from "@/parts/when";
import * as texts from "@/texts";
import type { Issue } from "./issue";

const t = texts.finding.history;

/** What happened to a finding, newest first. */
export function History({ issue, limit = 200 }: { issue: Issue; limit?: number }) {
  if (issue.activityHistory.length === 0) return <p className="text-muted">{t.none}</p>;
  return (
    <ol className="flex flex-col gap-2 text-[0.8125rem]">
      {issue.activityHistory.slice(0, limit).map((event, i) => (
        <li key={i} className="grid grid-cols-[5.5rem_1fr] gap-2">
          <span className="text-xs text-muted"><When at={event.date} /></span>
          <span className="min-w-0 wrap-anywhere">
            {event.title}
            {event.actor && <span className="text-muted"> · {event.actor}</span>}
            {event.note && <span className="mt-0.5 block rounded border-l-2 border-line-strong/50 pl-2 whitespace-pre-wrap text-muted">{event.note}</span>}
          </span>
        </li>
      ))}
    </ol>
  );
}
