import { api, type Schemas, unwrap } from "@/api/client";
import { csvLine, save } from "./csv";
import { type Filters, lastDay, type Period } from "./period";

type Issue = Schemas["findings.v1.Issue"];

const pageSize = 1000;
const head = ["id", "project", "ref", "rule", "severity", "status", "file", "line", "message", "open since"];

const lineOf = (issue: Issue): string =>
  csvLine([
    issue.id, issue.repository?.name, issue.ref, issue.rulePath, issue.severity, issue.aggregateState, issue.filePath, issue.line, issue.message, issue.relevantSince,
  ]);

/**
 * Saves all findings that the report counts as open at its end: the filter, uncapped, a page after the other. `tell`
 * hears how many of how many are read.
 */
export async function saveFindings(deploymentId: string, filters: Filters, period: Period, tell: (done: number, all: number) => void): Promise<void> {
  const parts = [csvLine(head)];
  let cursor: string | undefined;
  let done = 0;
  do {
    const page = await unwrap(
      api.POST("/api/reporting/{deploymentId}/findings", {
        params: { path: { deploymentId } },
        body: { reportType: "REPORT_TYPE_PROJECT", filters: { ...filters, timePeriod: period }, limit: pageSize, cursor },
      }),
    );
    parts.push(page.findings.map(lineOf).join(""));
    done += page.findings.length;
    tell(done, page.total);
    cursor = page.cursor || undefined;
  } while (cursor);
  save(`findings-${lastDay(period)}.csv`, parts);
}
