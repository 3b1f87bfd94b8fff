import type { Schemas } from "@/api/client";

export type Filters = Schemas["reporting.v1.ReportFilters"];
export type Range = "7d" | "30d" | "90d" | "365d";

/** The report as its address says it. Everything absent has its default. */
export interface Search {
  range?: Range;
  /** The last day of the period (2026-11-30); today when absent. */
  asOf?: string;
  /** A period of its own, instead of range and asOf. */
  since?: string;
  until?: string;
  compare?: "year";
  compareSince?: string;
  compareUntil?: string;
  filters?: Filters;
}

export interface Period {
  since: string;
  until: string;
}

export const ranges: Range[] = ["7d", "30d", "90d", "365d"];
const defaultRange: Range = "30d";
const dayLength = 86_400_000;

const isTime = (value: unknown): value is string => typeof value === "string" && !Number.isNaN(Date.parse(value));
const isDay = (value: unknown): value is string => isTime(value) && /^\d{4}-\d{2}-\d{2}$/.test(value);

/** parseSearch keeps what it understands: addresses are typed, shortened and mailed. */
export function parseSearch(given: Record<string, unknown>): Search {
  const search: Search = {};
  if (ranges.includes(given.range as Range)) search.range = given.range as Range;
  if (isDay(given.asOf)) search.asOf = given.asOf;
  if (isTime(given.since) && isTime(given.until) && Date.parse(given.since) < Date.parse(given.until)) {
    search.since = given.since;
    search.until = given.until;
  }
  if (given.compare === "year") search.compare = "year";
  if (isTime(given.compareSince) && isTime(given.compareUntil) && Date.parse(given.compareSince) < Date.parse(given.compareUntil)) {
    search.compareSince = given.compareSince;
    search.compareUntil = given.compareUntil;
  }
  if (typeof given.filters === "object" && given.filters !== null && !Array.isArray(given.filters)) search.filters = given.filters as Filters;
  return search;
}

const midnight = (time: number): number => Math.floor(time / dayLength) * dayLength;
const iso = (time: number): string => new Date(time).toISOString().replace(".000Z", "Z");

export const rangeOf = (search: Search): Range => search.range ?? defaultRange;

/** periodOf is the period of the report, in whole days of UTC as the buckets of reports are. It ends with the last day. */
export function periodOf(search: Search, now = Date.now()): Period {
  if (search.since && search.until) return { since: search.since, until: search.until };
  const end = midnight(search.asOf ? Date.parse(search.asOf) : now) + dayLength;
  return { since: iso(end - Number.parseInt(rangeOf(search), 10) * dayLength), until: iso(end) };
}

function yearBefore(time: string): string {
  const date = new Date(time);
  date.setUTCFullYear(date.getUTCFullYear() - 1);
  return iso(date.getTime());
}

/** compareOf is the period to compare with; undefined is the period of the same length before. */
export function compareOf(search: Search, period: Period): Period | undefined {
  if (search.compareSince && search.compareUntil) return { since: search.compareSince, until: search.compareUntil };
  if (search.compare === "year") return { since: yearBefore(period.since), until: yearBefore(period.until) };
  return undefined;
}

/** The first and the last day of a period, for date fields. The API's periods end at the midnight after the last day. */
export const firstDay = (period: Period): string => period.since.slice(0, 10);
export const lastDay = (period: Period): string => new Date(Date.parse(period.until) - 1).toISOString().slice(0, 10);

/** ofDays is the period of two days, both included. */
export const ofDays = (first: string, last: string): Period => ({ since: iso(Date.parse(first)), until: iso(Date.parse(last) + dayLength) });

const days = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });

/** formatPeriod says the days of a period in the reader's words. Buckets are days of UTC, so are these. */
export function formatPeriod(period: { since?: string; until?: string } | undefined): string {
  if (!period?.since || !period.until) return "–";
  return days.formatRange(new Date(period.since), new Date(Math.max(Date.parse(period.until) - 1, Date.parse(period.since))));
}

/** howMany counts the values of a filter. */
export const howMany = (filters: Filters | undefined): number =>
  Object.values(filters ?? {}).reduce((n, value) => n + (Array.isArray(value) ? value.length : 0), 0);
