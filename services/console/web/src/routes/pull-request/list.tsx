import { Link } from "@tanstack/react-router";
import { OctagonX } from "lucide-react";
import { useEffect, useRef } from "react";
import { formatNumber } from "@/format";
import { Badge, SeverityBadge } from "@/parts/badge";
import { cx } from "@/parts/cx";
import { StatusBadge } from "@/parts/finding/decide";
import type { Row } from "@/routes/triage/rows";
import * as texts from "@/texts";
import type { Finding, View } from "./calls";
import { ScansBehind } from "./scans";
import type { Decisions } from "./use-decisions";

const t = texts.pullRequest;

const optionId = (finding: Finding) => `pull-finding-${finding.id}`;

/** The findings: blocking ones first. */
export function FindingList({ view, list, org, onOpen }: { view: View; list: Decisions; org: string; onOpen: (index: number) => void }) {
  const { findings, active } = list;
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    void box.current?.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const chosen = findings[active];
  return (
    <>
      <div className="flex min-h-9 items-center gap-3 border-b border-line bg-surface px-3 text-xs text-muted tabular-nums">
        <span>{t.counts.added(formatNumber(view.added))}</span>
        {view.ignored > 0 && <span>{t.counts.ignored(formatNumber(view.ignored))}</span>}
        <Link
          to="/$org/triage"
          params={{ org }}
          search={{ project: view.pull_request?.project, ref: view.pull_request?.ref, state: "any" }}
          className="ml-auto text-accent hover:underline"
        >
          {t.all}
        </Link>
      </div>
      <div
        ref={box}
        role="listbox"
        tabIndex={0}
        aria-label={t.list}
        aria-activedescendant={chosen && optionId(chosen)}
        className="min-h-0 grow overflow-y-auto overscroll-contain outline-offset-[-2px]"
        onKeyDown={(event) => {
          const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, Home: -findings.length, End: findings.length };
          const by = steps[event.key];
          if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
          event.preventDefault();
          list.move(by);
        }}
      >
        {findings.map((finding, index) => (
          <Item key={finding.id} finding={finding} row={list.rows.get(String(finding.id))} active={index === active} onOpen={() => onOpen(index)} />
        ))}
      </div>
      <div className="max-h-40 overflow-y-auto border-t border-line bg-surface px-3 py-2">
        {view.findings_omitted > 0 && <p className="mb-2 text-xs text-warn">{t.omitted(formatNumber(view.findings_omitted))}</p>}
        <ScansBehind view={view} org={org} />
      </div>
    </>
  );
}

function Item({ finding, row, active, onOpen }: { finding: Finding; row?: Row; active: boolean; onOpen: () => void }) {
  const ignored = finding.status === "ignored";
  return (
    <div
      id={optionId(finding)}
      role="option"
      aria-selected={active}
      aria-current={active || undefined}
      onClick={onOpen}
      className={cx(
        "flex cursor-default flex-col gap-0.5 border-b border-l-2 border-b-line px-3 py-2",
        active ? "border-l-accent bg-accent-soft" : "border-l-transparent hover:bg-sunken",
      )}
    >
      <div className="flex items-center gap-2">
        <SeverityBadge severity={finding.severity} />
        <span className={cx("truncate text-[0.8125rem] font-medium", ignored && "text-muted")}>{row?.rule ?? finding.rule_name}</span>
        <span className="ml-auto flex shrink-0 items-center gap-1.5">
          {finding.blocked_by.length > 0 && (
            <span className="inline-flex items-center gap-1 text-xs font-semibold text-bad"><OctagonX size={13} aria-hidden />{t.blocking}</span>
          )}
          {!finding.added && <Badge>{t.existing}</Badge>}
          {row && row.status !== "open" && <StatusBadge row={row} />}
        </span>
      </div>
      {row?.message && <div className="line-clamp-2 text-xs wrap-anywhere">{row.message}</div>}
      <div className="truncate font-mono text-[0.6875rem] text-muted" title={finding.path}>
        {finding.path}{finding.line > 0 && `:${finding.line}`}
      </div>
      {finding.blocked_by.length > 0 && <div className="truncate text-xs text-muted">{t.blockedBy}: {finding.blocked_by.join(", ")}</div>}
    </div>
  );
}
