import { ChartArea, Table2 } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { formatNumber } from "@/format";
import { IconButton } from "@/parts/button";
import { cx } from "@/parts/cx";
import * as texts from "@/texts";
import { formatPeriod } from "../period";
import { type Kind, Plot } from "./plot";
import { colours, type Series, type TimeSpan } from "./series";

const words = texts.overview.charts;

/** The width of an element. Paper has no observer: it keeps the last width, and the drawing scales. */
function useWidth() {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(560);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const observer = new ResizeObserver(([entry]) => entry && entry.contentRect.width > 0 && setWidth(Math.round(entry.contentRect.width)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width] as const;
}

const hasValues = (one: Series): boolean => one.values.some((value) => value !== 0);

/** Whether only one period has numbers. An area needs two: one point would be a spike, or nothing. */
const isOnePoint = (series: Series[]): boolean => new Set(series.flatMap((one) => one.values.flatMap((value, i) => (value === 0 ? [] : i)))).size <= 1;

/** A chart of numbers over time, with its table: hidden from the eye until asked for, and always there for screen readers. */
export function Chart({ title, kind, buckets, series, format = formatNumber, tick = format, empty, className }: {
  title: string;
  kind: Kind;
  buckets: TimeSpan[];
  series: Series[];
  format?: (value: number) => string;
  tick?: (value: number) => string;
  /** What to do while there is nothing to draw. */
  empty: string;
  className?: string;
}) {
  const [ref, width] = useWidth();
  const [marked, setMarked] = useState<number>();
  const [table, setTable] = useState(false);
  const shown = marked !== undefined && marked < buckets.length ? marked : undefined;
  // Lines of nothing would lie on each other at zero. The table has them all.
  const drawn = kind === "line" && series.some(hasValues) ? series.filter(hasValues) : series;
  return (
    <figure className={cx("min-w-0 break-inside-avoid rounded-lg border border-line bg-surface", className)}>
      <figcaption className="flex min-h-10 items-center gap-2 border-b border-line py-1 pr-1.5 pl-4">
        <h2 className="min-w-0 grow text-[0.8125rem] font-semibold">{title}</h2>
        <span className="print:hidden">
          <IconButton label={table ? words.hideTable : words.showTable} aria-pressed={table} onClick={() => setTable(!table)}>
            {table ? <ChartArea size={15} aria-hidden /> : <Table2 size={15} aria-hidden />}
          </IconButton>
        </span>
      </figcaption>
      <div className="p-4 pt-3">
        <div ref={ref} className={table ? "hidden print:block" : undefined}>
          {series.some(hasValues) ? (
            <>
              <Legend series={drawn} at={shown} format={format} period={shown === undefined ? undefined : buckets[shown]} />
              <Plot kind={kind === "area" && isOnePoint(series) ? "bar" : kind} buckets={buckets} series={drawn} width={width} tick={tick} marked={shown} onMark={setMarked} />
            </>
          ) : (
            <div className="flex min-h-58 flex-col items-center justify-center gap-1 text-center text-pretty">
              <p className="font-medium">{words.noData}</p>
              <p className="max-w-72 text-muted">{empty}</p>
            </div>
          )}
        </div>
        <div className={table ? "max-h-64 overflow-auto print:sr-only" : "sr-only"} tabIndex={table ? 0 : undefined} role={table ? "region" : undefined} aria-label={table ? title : undefined}>
          <ChartTable title={title} buckets={buckets} series={series} format={format} />
        </div>
      </div>
    </figure>
  );
}

function Legend({ series, at, format, period }: { series: Series[]; at?: number; format: (value: number) => string; period?: TimeSpan }) {
  return (
    <div className="mb-1 flex min-h-6 flex-wrap items-center gap-x-3 gap-y-0.5 text-xs text-muted" aria-hidden>
      {series.map((one) => (
        <span key={one.key} className="inline-flex items-center gap-1.5 whitespace-nowrap">
          <span className={cx("size-2.5 rounded-sm", colours[one.colour].bg)} />
          {one.label}
          {at !== undefined && <b className="font-semibold text-ink tabular-nums">{format(one.values[at] ?? 0)}</b>}
        </span>
      ))}
      {period && <span className="ml-auto">{formatPeriod(period)}</span>}
    </div>
  );
}

function ChartTable({ title, buckets, series, format }: { title: string; buckets: TimeSpan[]; series: Series[]; format: (value: number) => string }) {
  return (
    <table className="w-full border-collapse text-[0.8125rem]">
      <caption className="sr-only">{title}</caption>
      <thead>
        <tr className="text-left text-xs text-muted">
          <th scope="col" className="py-1 pr-3 font-medium">{words.bucket}</th>
          {series.map((one) => <th key={one.key} scope="col" className="py-1 pl-3 text-right font-medium">{one.label}</th>)}
        </tr>
      </thead>
      <tbody>
        {buckets.map((bucket, i) => (
          <tr key={bucket.since} className="border-t border-line">
            <th scope="row" className="py-1 pr-3 text-left font-normal whitespace-nowrap">{formatPeriod(bucket)}</th>
            {series.map((one) => <td key={one.key} className="py-1 pl-3 text-right tabular-nums">{format(one.values[i] ?? 0)}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
