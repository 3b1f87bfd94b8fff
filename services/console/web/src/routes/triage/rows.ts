import { ruleName } from "@/format";
import type { Schemas } from "@/api/client";

export type Issue = Schemas["findings.v1.Issue"];
export type TriageState = NonNullable<Issue["triageState"]>;
export type TriageReason = NonNullable<Issue["triageReason"]>;

/** A decision, as far as another one may overwrite it. */
export interface Decision {
  state: TriageState;
  reason?: TriageReason;
  note: string;
}

/** A row of the list: what it shows, and no more, so that thousands of rows are small. */
export interface Row {
  id: string;
  severity: string;
  rule: string;
  message: string;
  path: string;
  line: number;
  project: string;
  ref: string;
  type: string;
  since: string;
  /** Combined state, in small letters and without its prefix: open, ignored_app, fixed. */
  status: string;
  decision: Decision;
  mayIgnore: "ignore" | "request" | "none";
}

export const word = (value: string | undefined | null, prefix: string): string =>
  (value ?? "").startsWith(prefix) ? (value ?? "").slice(prefix.length).toLowerCase() : (value ?? "");

export const decisionOf = (issue: Issue): Decision => ({
  state: issue.triageState ?? "FINDING_TRIAGE_STATE_UNTRIAGED",
  reason: issue.triageReason ?? undefined,
  note: issue.note,
});

/** Where a finding is: "src/main.go:12 · acme/web". */
export const placeOf = ({ path, line, project }: Pick<Row, "path" | "line" | "project">): string => [path && (line ? `${path}:${line}` : path), project].filter(Boolean).join(" · ");

export const sameDecision = (a: Decision, b: Decision): boolean => a.state === b.state && a.reason === b.reason;

export function rowOf(issue: Issue): Row {
  const permission = issue.triagePermission;
  return {
    id: String(issue.id),
    severity: word(issue.severity, "SEVERITY_"),
    rule: ruleName(issue.rulePath, issue.ruleDisplayName),
    message: issue.message.slice(0, 400),
    path: issue.filePath,
    line: issue.line,
    project: issue.repository?.name ?? "",
    ref: issue.ref,
    type: word(issue.issueType, "ISSUE_TYPE_"),
    since: issue.relevantSince ?? "",
    status: word(issue.aggregateState, "AGGREGATE_ISSUE_STATE_"),
    decision: decisionOf(issue),
    mayIgnore: permission === "TRIAGE_PERMISSION_IGNORE" ? "ignore" : permission === "TRIAGE_PERMISSION_REQUEST" ? "request" : "none",
  };
}

/** The status that a finding has after a decision. Scans decide about fixed ones. */
export function statusAfter(row: Row, decision: Decision): string {
  if (row.status === "fixed" || row.status === "removed" || row.status === "ignored_code") return row.status;
  switch (decision.state) {
    case "FINDING_TRIAGE_STATE_IGNORED":
      return "ignored_app";
    case "FINDING_TRIAGE_STATE_PROVISIONALLY_IGNORED":
      return "provisionally_ignored_app";
    case "FINDING_TRIAGE_STATE_REVIEWING":
      return "reviewing";
    case "FINDING_TRIAGE_STATE_FIXING":
      return "fixing";
    default:
      return "open";
  }
}
