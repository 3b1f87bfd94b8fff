/** A colour of a chart. Tailwind finds the classes here: it reads *.tsx only. */
export const colours = {
  critical: { fill: "fill-chart-critical", stroke: "stroke-chart-critical", bg: "bg-chart-critical" },
  high: { fill: "fill-chart-high", stroke: "stroke-chart-high", bg: "bg-chart-high" },
  medium: { fill: "fill-chart-medium", stroke: "stroke-chart-medium", bg: "bg-chart-medium" },
  low: { fill: "fill-chart-low", stroke: "stroke-chart-low", bg: "bg-chart-low" },
  good: { fill: "fill-chart-good", stroke: "stroke-chart-good", bg: "bg-chart-good" },
  accent: { fill: "fill-accent", stroke: "stroke-accent", bg: "bg-accent" },
  muted: { fill: "fill-line-strong", stroke: "stroke-line-strong", bg: "bg-line-strong" },
} as const;

export interface Series {
  key: string;
  label: string;
  colour: keyof typeof colours;
  values: number[];
  /** Drawn below the zero line. */
  below?: boolean;
}

export interface TimeSpan {
  since?: string;
  until?: string;
}

export type Size = "day" | "week" | "month";

/** sizeOf is the length of the buckets: the longest, because the first and the last may be cut. */
export function sizeOf(buckets: TimeSpan[]): Size {
  const longest = Math.max(0, ...buckets.map(({ since, until }) => (Date.parse(until ?? "") - Date.parse(since ?? "")) / 86_400_000));
  if (longest > 8) return "month";
  return longest > 1.5 ? "week" : "day";
}

const short = {
  day: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" }),
  week: new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" }),
  month: new Intl.DateTimeFormat(undefined, { month: "short", year: "2-digit", timeZone: "UTC" }),
};

export const labelOf = (bucket: TimeSpan, size: Size): string => (bucket.since ? short[size].format(new Date(bucket.since)) : "");

/** ticksOf chooses at most `most` positions, evenly spread, and always the last. */
export function ticksOf(count: number, most: number): number[] {
  if (count <= 0) return [];
  const step = Math.max(1, Math.ceil(count / most));
  const ticks = [];
  for (let i = count - 1; i >= 0; i -= step) ticks.unshift(i);
  return ticks;
}
