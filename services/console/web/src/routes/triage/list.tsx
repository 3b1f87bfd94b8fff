import { useVirtualizer } from "@tanstack/react-virtual";
import { Check } from "lucide-react";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { SeverityBadge } from "@/parts/badge";
import { cx } from "@/parts/cx";
import { StatusBadge } from "@/parts/finding/decide";
import { When } from "@/parts/when";
import { formatNumber } from "@/format";
import * as texts from "@/texts";
import type { Row } from "./rows";
import type { Triage } from "./use-triage";
import { longestWindow, windowAfter, windowAround } from "./window";

const t = texts.triage;
const rowHeight = 54;

export const rowId = (index: number): string => `finding-${index}`;

/** The rows of the list. Only those on the screen are in the page. */
export function List({ triage, onOpen, toggle, extend }: {
  triage: Triage;
  onOpen: (index: number) => void;
  toggle: (index: number, range: boolean) => void;
  extend: (by: number) => void;
}) {
  const { pages, active, selected } = triage;
  const [base, setBase] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const count = Math.max(0, Math.min(pages.length - base, longestWindow));
  const virtual = useVirtualizer({ count, getScrollElement: () => scroller.current, estimateSize: () => rowHeight, overscan: 6 });
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => pages.look(base + first, base + last), [pages, base, first, last, pages.length]);
  // The window follows the open finding when that changes, and scrolling always.
  const followed = useRef<{ pages: unknown; active: number }>(undefined);
  useEffect(() => {
    if (followed.current?.pages === pages && followed.current.active === active) return;
    if (active < base || active >= base + longestWindow) return setBase(windowAround(active, pages.length));
    followed.current = { pages, active };
    virtual.scrollToIndex(active - base, { align: "auto" });
  }, [pages, active, base, virtual]);
  useLayoutEffect(() => {
    const next = windowAfter(base, virtual.range?.startIndex ?? 1, virtual.range?.endIndex ?? 0, pages.length);
    if (next === base || !scroller.current) return;
    scroller.current.scrollTop -= (next - base) * rowHeight;
    setBase(next);
  }, [first, last]); // eslint-disable-line react-hooks/exhaustive-deps -- after a move, what is on the screen is known at the next scroll event
  return (
    <div
      ref={scroller}
      role="listbox"
      tabIndex={0}
      aria-label={t.list}
      aria-multiselectable
      aria-activedescendant={pages.row(active) ? rowId(active) : undefined}
      className="min-h-0 grow overflow-y-auto overscroll-contain outline-offset-[-2px]"
      onKeyDown={(event) => {
        const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / rowHeight) - 1);
        const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -pages.length, End: pages.length };
        const by = steps[event.key];
        if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        if (event.shiftKey) extend(by);
        else triage.move(by);
      }}
    >
      <div role="presentation" className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map(({ index: at, start }) => {
          const index = base + at;
          const row = pages.row(index);
          return (
            <div key={index} role="presentation" className="absolute inset-x-0" style={{ transform: `translateY(${start}px)`, height: rowHeight }}>
              {row ? (
                <Item
                  row={row}
                  index={index}
                  total={pages.length}
                  active={index === active}
                  selected={selected.has(row.id)}
                  by={triage.others.get(row.id)}
                  onOpen={onOpen}
                  toggle={triage.mayTriage ? toggle : undefined}
                />
              ) : (
                <div className="flex h-full items-center border-b border-line px-4 text-xs text-muted">{pages.isGone(index) ? t.rowGone : <Skeleton />}</div>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

const Skeleton = () => (
  <span className="flex w-full flex-col gap-1.5" aria-hidden>
    <span className="h-3 w-2/3 rounded bg-sunken" />
    <span className="h-2.5 w-1/2 rounded bg-sunken" />
  </span>
);

function Item({ row, index, total, active, selected, by, onOpen, toggle }: {
  row: Row;
  index: number;
  total: number;
  active: boolean;
  selected: boolean;
  by?: string;
  onOpen: (index: number) => void;
  toggle?: (index: number, range: boolean) => void;
}) {
  const decided = row.status !== "open";
  return (
    <div
      id={rowId(index)}
      role="option"
      aria-selected={selected}
      aria-current={active || undefined}
      aria-setsize={total}
      aria-posinset={index + 1}
      onClick={() => onOpen(index)}
      className={cx(
        "flex h-full cursor-default items-center gap-2.5 border-b border-l-2 border-b-line pr-3 pl-2.5",
        active ? "border-l-accent bg-accent-soft" : "border-l-transparent hover:bg-sunken",
      )}
    >
      {toggle && (
        <span
          aria-hidden
          title={t.selection.select(row.rule)}
          onClick={(event) => {
            event.stopPropagation();
            toggle(index, event.shiftKey);
          }}
          className="flex size-6 shrink-0 cursor-pointer items-center justify-center"
        >
          <span className={cx("flex size-4 items-center justify-center rounded border", selected ? "border-accent bg-accent text-accent-ink" : "border-line-strong/70 bg-surface")}>
            {selected && <Check size={12} strokeWidth={3} />}
          </span>
        </span>
      )}
      <div className="min-w-0 grow">
        <div className="flex items-center gap-2">
          <SeverityBadge severity={row.severity} />
          <span className={cx("min-w-0 truncate text-[0.8125rem] font-medium", decided && "text-muted")}>{row.rule}</span>
          <span className="min-w-0 flex-1 truncate text-[0.8125rem] text-muted max-lg:hidden">{row.message}</span>
          <span className="ml-auto shrink-0 text-xs text-muted tabular-nums"><When at={row.since} /></span>
        </div>
        <div className="mt-0.5 flex items-center gap-2 text-xs text-muted">
          <span className="max-w-[45%] shrink-0 truncate">{row.project}</span>
          <span className="truncate font-mono text-[0.6875rem]" title={row.path}>{row.path && `${row.path}${row.line ? `:${formatNumber(row.line).replace(/\D/g, "")}` : ""}`}</span>
          {(decided || by) && <span className="ml-auto flex shrink-0 items-center gap-1">{by && <span className="size-1.5 rounded-full bg-accent" title={t.somebody} />}<StatusBadge row={row} /></span>}
        </div>
      </div>
    </div>
  );
}
