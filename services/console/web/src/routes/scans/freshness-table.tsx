import { Link } from "@tanstack/react-router";
import { ArrowDown } from "lucide-react";
import type { Schemas } from "@/api/client";
import { formatNumber } from "@/format";
import { cx } from "@/parts/cx";
import { Ref } from "@/parts/ref";
import { Td, Th } from "@/parts/table";
import { When } from "@/parts/when";
import * as texts from "@/texts";
import type { Analysis } from "./calls";
import { StateBadge } from "./state";

const t = texts.scans.freshness;

/** One row for each tool and branch. On a phone each row is a card. */
export function FreshnessTable({ rows, org }: { rows: Analysis[]; org: string }) {
  return (
    <div className="overflow-hidden rounded-lg border border-line bg-surface">
      <table aria-label={t.table} className="w-full border-collapse text-left text-[0.8125rem] max-md:block md:table-fixed">
        <thead className="bg-sunken text-xs text-muted max-md:sr-only">
          <tr>
            <Th className="md:w-36">{t.state}</Th>
            <Th>{t.project}</Th>
            <Th className="md:w-[22%]">{t.tool}</Th>
            <Th className="md:w-32">{t.lastScan}</Th>
            <Th className="md:w-32">{t.covered}</Th>
          </tr>
        </thead>
        <tbody className="max-md:block">
          {rows.map((row) => <Row key={`${row.project_id} ${row.ref} ${row.tool} ${row.category}`} row={row} org={org} />)}
        </tbody>
      </table>
    </div>
  );
}

const cell = "max-md:block max-md:border-0 max-md:px-3 max-md:py-0";

/** The facts of an analysis, and below them what is wrong and what to do. */
function Row({ row, org }: { row: Analysis; org: string }) {
  return (
    <>
      <Numbers row={row} org={org} />
      {row.reason && (
        <tr className="max-md:block">
          <td className="max-md:hidden" />
          <td colSpan={4} className="px-3 pb-2.5 text-xs text-pretty text-muted wrap-anywhere max-md:block">{row.reason}</td>
        </tr>
      )}
    </>
  );
}

function Numbers({ row, org }: { row: Analysis; org: string }) {
  return (
    <tr className="max-md:flex max-md:flex-col max-md:gap-1 max-md:border-t max-md:border-line max-md:py-2.5 max-md:first:border-t-0">
      <Td className={cell}>
        <StateBadge state={row.state} />
        {row.state !== "ok" && row.since && <div className="mt-1 text-xs text-muted max-md:ml-2 max-md:inline">{t.since} <When at={row.since} /></div>}
      </Td>
      <Td className={cell}>
        <div className="font-medium wrap-anywhere">{row.project}</div>
        <div className="text-muted"><Ref name={row.ref} /></div>
      </Td>
      <Td className={cell}>
        <span className="wrap-anywhere">{row.tool}</span>
        {row.category && <div className="text-xs text-muted wrap-anywhere" title={t.category}>{row.category}</div>}
        <div className="text-xs text-muted tabular-nums max-md:inline max-md:pl-2">{row.scanner_version || texts.scans.versions.unknown}</div>
      </Td>
      <Td className={cell}>
        {row.last_scan && (
          <Link to="/$org/scans/$scanId" params={{ org, scanId: String(row.last_scan.id) }} className="text-accent hover:underline">
            <When at={row.last_scan.at} />
          </Link>
        )}
        <div className="text-xs text-muted max-md:ml-2 max-md:inline">{usual(row.usual_interval_days)}</div>
      </Td>
      <Td className={cx(cell, "tabular-nums")}>
        <span className="flex flex-wrap gap-x-3 gap-y-0.5 md:flex-col">
          <Size text={t.results} count={row.results} />
          <Size text={t.files} count={row.files} />
          <Size text={t.rules} count={row.rules} />
        </span>
      </Td>
    </tr>
  );
}

function usual(days: number): string {
  if (days === 0) return "";
  return `${t.usual.toLowerCase()} ${days === 1 ? t.everyDay : t.everyDays(formatNumber(days))}`;
}

/** A number of the last scan. A sharp drop shows what it was before. */
function Size({ text, count }: { text: (n: string) => string; count: Schemas["scans.v1.FreshnessCount"] | undefined }) {
  const now = count?.now ?? null;
  const before = count?.before ?? null;
  if (now === null) return null;
  const dropped = before !== null && now < before * 0.5;
  return (
    <span className={cx("whitespace-nowrap", dropped && "font-semibold text-warn")} title={before === null ? undefined : t.before(formatNumber(before))}>
      {dropped && <ArrowDown size={12} className="mr-0.5 inline" aria-hidden />}
      {text(formatNumber(now))}
      {dropped && <span className="text-xs font-normal"> ({t.before(formatNumber(before))})</span>}
    </span>
  );
}
