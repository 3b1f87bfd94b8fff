import { ChevronDown, ChevronUp } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { Badge } from "@/parts/badge";
import { IconButton } from "@/parts/button";
import { cx } from "@/parts/cx";
import * as texts from "@/texts";
import { Code } from "./code";
import type { Issue } from "./issue";

const t = texts.finding.trace;

type Flow = Schemas["findings.v1.ThreadFlow"];
type Step = Schemas["findings.v1.FlowStep"];

const flowsOf = (issue: Issue): Flow[] => (issue.context?.codeFlows ?? []).flatMap((flow) => flow.threadFlows).filter((flow) => flow.steps.length > 0);

/** Whether a scanner reported how data flow to the finding. */
export const hasTrace = (issue: Issue): boolean => flowsOf(issue).length > 0;

const longestFlow = 100;

/** The data flow to a finding, step by step. */
export function Trace({ issue }: { issue: Issue }) {
  const flows = flowsOf(issue);
  const [shown, setShown] = useState(0);
  const flow = flows[shown] ?? flows[0];
  if (!flow) return <p className="text-muted">{t.none}</p>;
  return (
    <div className="flex flex-col gap-2">
      {flows.length > 1 && (
        <div className="flex flex-wrap gap-1">
          {flows.slice(0, 20).map((_, i) => (
            <button
              key={i}
              type="button"
              aria-pressed={i === shown}
              onClick={() => setShown(i)}
              className={cx("min-h-6 rounded px-2 text-xs", i === shown ? "bg-accent-soft font-medium text-accent" : "text-muted hover:bg-sunken")}
            >
              {t.flows(i + 1)}
            </button>
          ))}
        </div>
      )}
      <Steps key={shown} steps={flow.steps.slice(0, longestFlow)} />
    </div>
  );
}

function Steps({ steps }: { steps: Step[] }) {
  const [open, setOpen] = useState(0);
  const kindOf = (step: Step, i: number): string | undefined =>
    i === 0 || step.kinds.includes("source") ? t.source : i === steps.length - 1 || step.kinds.includes("sink") ? t.sink : undefined;
  return (
    <div>
      <div className="mb-1 flex items-center gap-1 text-xs text-muted">
        <span className="tabular-nums" aria-live="polite">{t.step(open + 1, steps.length)}</span>
        <IconButton label={t.previous} disabled={open === 0} onClick={() => setOpen(open - 1)} className="size-6"><ChevronUp size={14} aria-hidden /></IconButton>
        <IconButton label={t.next} disabled={open === steps.length - 1} onClick={() => setOpen(open + 1)} className="size-6"><ChevronDown size={14} aria-hidden /></IconButton>
      </div>
      <ol className="flex flex-col">
        {steps.map((step, i) => {
          const place = step.location;
          const kind = kindOf(step, i);
          return (
            <li key={i} className={cx("relative border-l-2 pb-1.5 pl-3", i === open ? "border-accent" : "border-line")}>
              <button type="button" aria-expanded={i === open} onClick={() => setOpen(i)} className="flex w-full min-w-0 items-center gap-2 rounded py-0.5 text-left text-xs hover:bg-sunken">
                <span className="w-5 shrink-0 text-right text-muted tabular-nums">{i + 1}</span>
                {kind && <Badge tone={kind === t.sink ? "high" : "accent"}>{kind}</Badge>}
                <span className="truncate font-mono">{place?.path ? `${place.path}:${place.line}` : place?.logicalLocation}</span>
                {place?.message && <span className="truncate text-muted">{place.message}</span>}
              </button>
              {i === open && step.snippet && (
                <Code code={step.snippet} path={place?.path ?? ""} place={{ line: place?.line ?? 0, endLine: place?.endLine ?? 0 }} className="mt-1" />
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}
