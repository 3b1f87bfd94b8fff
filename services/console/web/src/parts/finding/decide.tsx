import { Ellipsis } from "lucide-react";
import { formatNumber } from "@/format";
import { Badge, type Tone } from "@/parts/badge";
import { Button, IconButton } from "@/parts/button";
import { Kbd } from "@/parts/keys";
import { Menu, MenuItem } from "@/parts/menu";
import * as texts from "@/texts";
import type { Change } from "@/routes/triage/decider";
import type { Row } from "@/routes/triage/rows";

const t = texts.triage.decide;

/** Decisions by the key that makes them; the last ones have no key. */
export const decisions = {
  false_positive: { key: "f", change: { state: "FINDING_TRIAGE_STATE_IGNORED", reason: "FINDING_TRIAGE_REASON_FALSE_POSITIVE" } },
  acceptable_risk: { key: "a", change: { state: "FINDING_TRIAGE_STATE_IGNORED", reason: "FINDING_TRIAGE_REASON_ACCEPTABLE_RISK" } },
  fixing: { key: "x", change: { state: "FINDING_TRIAGE_STATE_FIXING" } },
  reviewing: { key: "r", change: { state: "FINDING_TRIAGE_STATE_REVIEWING" } },
  no_time: { change: { state: "FINDING_TRIAGE_STATE_IGNORED", reason: "FINDING_TRIAGE_REASON_NO_TIME" } },
  duplicate: { change: { state: "FINDING_TRIAGE_STATE_IGNORED", reason: "FINDING_TRIAGE_REASON_DUPLICATE" } },
  reopen: { change: { state: "FINDING_TRIAGE_STATE_REOPENED" } },
} as const satisfies Record<string, { key?: string; change: Change }>;

export type DecisionName = keyof typeof decisions;
export const decisionNames = Object.keys(decisions) as DecisionName[];

/** The words of a decision: "False positive", "To fix". */
export function nameOf({ state, reason }: { state?: string | null; reason?: string | null }): string {
  const known = decisionNames.find((name) => {
    const { change } = decisions[name];
    return change.state === state && (!("reason" in change) || change.reason === reason);
  });
  if (known) return t[known];
  if (!state) return t.note;
  if (state === "FINDING_TRIAGE_STATE_IGNORED") return texts.triage.states.ignored;
  if (state === "FINDING_TRIAGE_STATE_PROVISIONALLY_IGNORED") return texts.triage.states.provisionally_ignored;
  return texts.triage.states.open;
}

export const ignores = (change: Change): boolean => change.state === "FINDING_TRIAGE_STATE_IGNORED";

const tones: Record<string, Tone> = { open: "info", reviewing: "low", fixing: "warn", fixed: "good" };

/** The state of a finding, with the reason where people ignored it. */
export function StatusBadge({ row }: { row: Pick<Row, "status" | "decision"> }) {
  const known = texts.triage.status as Record<string, string>;
  const text = row.status === "ignored_app" ? nameOf(row.decision) : (known[row.status] ?? row.status);
  return <Badge tone={tones[row.status] ?? "accent"}>{text}</Badge>;
}

/** Buttons of the decisions that the caller may make, with their keys. */
export function DecisionBar({ row, may, selected = 0, onDecide, onNote }: {
  row: Row;
  may: boolean;
  /** How many findings are selected. A decision is about them, and not about the one that is shown. */
  selected?: number;
  onDecide: (change: Change) => void;
  onNote: () => void;
}) {
  if (!may) return <p className="text-xs text-muted">{t.mayNot}</p>;
  const allowed = (name: DecisionName): boolean => !ignores(decisions[name].change) || row.mayIgnore !== "none";
  const main = (["false_positive", "acceptable_risk", "fixing", "reviewing"] as const).filter(allowed);
  const rest = (["no_time", "duplicate", "reopen"] as const).filter(allowed);
  return (
    <div className="flex flex-wrap items-center gap-1" role="group" aria-label={t.label}>
      {main.map((name) => (
        <Button key={name} onClick={() => onDecide(decisions[name].change)} aria-keyshortcuts={decisions[name].key} className="!gap-1 !px-2">
          {t[name]}
          <span className="max-md:hidden" aria-hidden><Kbd>{decisions[name].key}</Kbd></span>
        </Button>
      ))}
      <span className="inline-flex items-center">
        <Button look="quiet" onClick={onNote} aria-keyshortcuts="n" className="!gap-1 !px-2">
          {t.note}
          <span className="max-md:hidden" aria-hidden><Kbd>n</Kbd></span>
        </Button>
        <Menu align="start" trigger={<IconButton label={texts.triage.more}><Ellipsis size={16} aria-hidden /></IconButton>}>
          {rest.map((name) => <MenuItem key={name} onSelect={() => onDecide(decisions[name].change)}>{t[name]}</MenuItem>)}
        </Menu>
      </span>
      {selected > 0 && <p role="status" className="w-full text-xs font-medium text-accent">{t.ofSelected(formatNumber(selected))}</p>}
      {row.mayIgnore === "request" && <p className="w-full text-xs text-muted">{t.requests}</p>}
      {row.mayIgnore === "none" && <p className="w-full text-xs text-muted">{t.mayNotIgnore}</p>}
    </div>
  );
}
