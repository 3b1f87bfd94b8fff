import { Link } from "@tanstack/react-router";
import { useDeployment } from "@/api/session";
import { formatNumber } from "@/format";
import { cx } from "@/parts/cx";
import * as texts from "@/texts";
import type { Search as TriageSearch } from "@/routes/triage/search";
import type { PeriodNumbers } from "./data";
import { formatDuration } from "./duration";

const words = texts.overview.cards;

interface Card {
  label: string;
  of: (numbers: PeriodNumbers) => number;
  format?: (value: number) => string;
  /** More is better (true), worse (false), or neither. */
  moreIsGood?: boolean;
}

const signed = new Intl.NumberFormat(undefined, { signDisplay: "exceptZero" });

const days = new Intl.NumberFormat(undefined, { style: "unit", unit: "day", unitDisplay: "short" });

const cards: Card[] = [
  { label: words.open, of: (numbers) => numbers.open?.total ?? 0, moreIsGood: false },
  { label: words.opened, of: (numbers) => numbers.opened, moreIsGood: false },
  { label: words.fixed, of: (numbers) => numbers.fixed, moreIsGood: true },
  { label: words.net, of: (numbers) => numbers.net, format: (value) => signed.format(value), moreIsGood: false },
  { label: words.age, of: (numbers) => numbers.medianOpenAge, format: (value) => days.format(value), moreIsGood: false },
  {
    label: words.timeToFix,
    of: (numbers) => numbers.timeToFix?.medianSeconds ?? 0,
    format: (value) => (value === 0 ? "–" : formatDuration(value)),
    moreIsGood: false,
  },
];

/** The headline numbers, each with the one of the period that it is compared with. `open` are the conditions of triage that list the open findings. */
export function Cards({ now, before, open }: { now: PeriodNumbers; before: PeriodNumbers; open?: TriageSearch }) {
  const { slug: org = "" } = useDeployment();
  return (
    <div className="flex flex-col gap-1.5">
      <dl className="grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line sm:grid-cols-3 xl:grid-cols-6 print:grid-cols-3">
        {cards.map(({ label, of, format = formatNumber, moreIsGood }) => {
          const value = of(now);
          const past = of(before);
          const same = format(value) === format(past);
          const better = same || past === 0 || moreIsGood === undefined ? undefined : value > past === moreIsGood;
          return (
            <div key={label} className="flex min-w-0 flex-col bg-surface px-4 py-3">
              <dt className="truncate text-xs text-muted" title={label}>{label}</dt>
              <dd className="text-2xl leading-8 font-semibold tracking-tight tabular-nums">{format(value)}</dd>
              <dd className={cx("text-xs tabular-nums", better === undefined ? "text-muted" : better ? "text-good" : "text-bad")}>
                {same ? words.same : <><span aria-hidden>{value > past ? "▲" : "▼"}</span> {words.before(format(past))}</>}
              </dd>
            </div>
          );
        })}
      </dl>
      <p className="text-xs text-muted">
        {words.openMeans} {open && <Link to="/$org/triage" params={{ org }} search={open} className="text-accent underline print:hidden">{words.showOpen}</Link>}
      </p>
    </div>
  );
}
