import type { Report } from "./data";

type Cell = string | number | boolean | undefined | null;

/**
 * A cell of RFC 4180. Spreadsheets run cells that begin with these characters as formulas, and names are texts of
 * strangers: such a text gets an apostrophe, which spreadsheets do not show. Numbers stay numbers.
 */
export function csvCell(value: Cell): string {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = value ?? "";
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const csvLine = (cells: Cell[]): string => `${cells.map(csvCell).join(",")}\r\n`;

interface Bucket {
  timePeriod?: { since?: string; until?: string };
}

/** One line for each number: which report, of which time, what it is, and the number as the API returned it. */
export function reportCsv(report: Report): string {
  const out = [csvLine(["report", "since", "until", "name", "value"])];
  const line = (name: string, at: Bucket["timePeriod"], what: string, value: Cell) => out.push(csvLine([name, at?.since, at?.until, what, value]));
  const flatten = (name: string, at: Bucket["timePeriod"], value: object, prefix = "") => {
    for (const [key, one] of Object.entries(value)) {
      if (key === "timePeriod") continue;
      if (typeof one === "object" && one !== null) flatten(name, at, one, `${prefix}${key}.`);
      else line(name, at, prefix + key, one as Cell);
    }
  };
  const buckets = (name: string, list: Bucket[]) => {
    for (const bucket of list) flatten(name, bucket.timePeriod, bucket);
  };
  const { thisPeriod, comparedPeriod, projects } = report.overview;
  if (thisPeriod) flatten("overview", thisPeriod.timePeriod, thisPeriod);
  if (comparedPeriod) flatten("overview", comparedPeriod.timePeriod, comparedPeriod);
  for (const project of projects) line("open by project", thisPeriod?.timePeriod, project.name, project.open?.total);
  buckets("open by severity", report.backlog.buckets);
  buckets("activity", report.activity.buckets);
  buckets("median open age in days", report.age.buckets);
  buckets("time to fix", report.timeToFix.buckets);
  for (const bucket of report.rules.buckets) {
    for (const [rule, open] of Object.entries(bucket.open ?? {})) line("open by rule", bucket.timePeriod, rule, open);
  }
  return out.join("");
}

/** Gives the browser a file to save. The mark tells spreadsheets that the text is UTF-8. */
export function save(name: string, parts: string[]): void {
  const url = URL.createObjectURL(new Blob(["\ufeff", ...parts], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
