import { useQuery } from "@tanstack/react-query";
import { useDeployment } from "@/api/session";
import { cx } from "@/parts/cx";
import { formatCompact, formatNumber } from "@/format";
import * as texts from "@/texts";
import { countsQuery } from "./calls";
import { type State, stateNames } from "./fields";
import { clean, type Search, statesOf } from "./search";

const t = texts.triage;

const numberOf = (counts: { open: string; reviewing: string; fixing: string; ignored: string; provisionallyIgnored: string; closed: string }, state: State): number =>
  Number({ open: counts.open, reviewing: counts.reviewing, fixing: counts.fixing, ignored: counts.ignored, provisionally_ignored: counts.provisionallyIgnored, fixed: counts.closed }[state]);

/** The states with the numbers of their findings. One is chosen, several from a view, or all. */
export function StateTabs({ search, set }: { search: Search; set: (search: Search) => void }) {
  const { data } = useQuery(countsQuery(useDeployment().id ?? "", search));
  const chosen = statesOf(search);
  const shown = stateNames.filter((name) => name !== "provisionally_ignored" || chosen.includes(name) || (data && numberOf(data, name) > 0));
  const tab = (label: string, active: boolean, onClick: () => void, count?: number) => (
    <button
      key={label}
      type="button"
      aria-pressed={active}
      onClick={onClick}
      title={count === undefined ? undefined : t.count(formatNumber(count))}
      className={cx(
        "inline-flex min-h-7 items-center gap-1.5 rounded px-2 outline-offset-[-2px] md:px-2.5 text-[0.8125rem] whitespace-nowrap",
        active ? "bg-surface font-medium text-ink shadow-[0_0_0_1px_var(--color-line-strong)]" : "text-muted hover:text-ink",
      )}
    >
      {label}
      {count !== undefined && <span className="text-xs text-muted tabular-nums">{count < 100_000 ? formatNumber(count) : formatCompact(count)}</span>}
    </button>
  );
  return (
    <div role="group" aria-label={t.tabs.label} className="flex max-w-full flex-wrap gap-0.5 rounded-md bg-sunken p-0.5">
      {shown.map((name) => tab(t.states[name], chosen.includes(name), () => set(clean({ ...search, state: name === "open" ? undefined : name })), data && numberOf(data, name)))}
      {tab(t.tabs.any, chosen.length === 0, () => set(clean({ ...search, state: "any" })))}
    </div>
  );
}
