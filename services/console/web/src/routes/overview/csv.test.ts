import { expect, it } from "vitest";
import { csvCell, reportCsv } from "./csv";
import type { Report } from "./data";

it("quotes and defuses texts, and leaves numbers alone", () => {
  expect(["a,b", 'say "x"', "two\nlines", "plain", "=1+1", "-2", "@x", undefined].map(csvCell)).toEqual([
    '"a,b"', '"say ""x"""', '"two\nlines"', "plain", "'=1+1", "'-2", "'@x", "",
  ]);
  expect(csvCell(-2)).toBe("-2");
});

it("has each number of the answers once, as they are", () => {
  const at = { since: "2026-05-01T00:00:00Z", until: "2026-06-01T00:00:00Z" };
  const empty = { buckets: [] };
  const report = {
    overview: {
      thisPeriod: { timePeriod: at, open: { low: 1, medium: 0, high: 2, critical: 0, total: 3 }, net: -4 },
      projects: [{ name: "=acme/web", open: { total: 3 } }],
    },
    backlog: { buckets: [{ timePeriod: at, low: 1, medium: 0, high: 2, critical: 0 }] },
    activity: empty, age: empty, timeToFix: empty,
    rules: { buckets: [{ timePeriod: at, open: { "go.sqli": 3 } }] },
  } as unknown as Report;
  const period = "2026-05-01T00:00:00Z,2026-06-01T00:00:00Z";
  expect(reportCsv(report).split("\r\n")).toEqual([
    "report,since,until,name,value",
    `overview,${period},open.low,1`, `overview,${period},open.medium,0`, `overview,${period},open.high,2`,
    `overview,${period},open.critical,0`, `overview,${period},open.total,3`, `overview,${period},net,-4`,
    `open by project,${period},'=acme/web,3`,
    `open by severity,${period},low,1`, `open by severity,${period},medium,0`, `open by severity,${period},high,2`, `open by severity,${period},critical,0`,
    `open by rule,${period},go.sqli,3`,
    "",
  ]);
});
