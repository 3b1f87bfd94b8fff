// Numbers and dates in the reader's locale.
const number = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });

export type Moment = string | number | Date | undefined | null;

const isMoment = (value: Moment): value is string | number | Date =>
  value !== undefined && value !== null && value !== "" && !Number.isNaN(new Date(value).getTime());

export const formatNumber = (value: number | bigint): string => number.format(value);
export const formatCompact = (value: number): string => compact.format(value);
/** formatPercent takes a share between 0 and 1. */
export const formatPercent = (share: number): string => percent.format(share);
export const formatDate = (value: Moment): string => (isMoment(value) ? date.format(new Date(value)) : "–");
export const formatDateTime = (value: Moment): string => (isMoment(value) ? dateTime.format(new Date(value)) : "–");

const steps: Array<[Intl.RelativeTimeFormatUnit, number]> = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** formatAgo says how long ago, or in how long, something is: "3 days ago". */
export function formatAgo(value: Moment, now = Date.now()): string {
  if (!isMoment(value)) return "–";
  const seconds = (new Date(value).getTime() - now) / 1000;
  for (const [unit, size] of steps) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return relative.format(Math.trunc(seconds), "second");
}

/** safeLink returns the URL if it is http or https, else undefined: scanners and rules choose URLs. */
export function safeLink(url: string | undefined | null): string | undefined {
  if (!url) return undefined;
  try {
    const parsed = new URL(url);
    return parsed.protocol === "https:" || parsed.protocol === "http:" ? parsed.href : undefined;
  } catch {
    return undefined;
  }
}

/** shortRule is the short name of a rule of which only the path is known. */
export const shortRule = (path: string): string => ruleName(path, path.split(".").at(-1));

/**
 * ruleName is the short name of a rule. The API shortens dotted paths ("go.lang.weak-hash") to their last part; a part that
 * begins with a digit belongs to a version ("CVE-2008-0732-javamail_1.4_mail"), and then the whole path is the name.
 */
export const ruleName = (path: string, displayName: string | undefined): string =>
  path.split(".").every((part) => /^[A-Za-z_]/.test(part)) ? displayName || path : path;
