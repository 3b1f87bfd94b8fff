import type { Schemas } from "@/api/client";

export type Filter = Schemas["findings.v1.IssuesFilter"];

/** A condition that people choose from values: a parameter of the address, and a list of IssuesFilter. */
export interface Field {
  /** Name in the address. */
  param: string;
  /** Field of IssuesFilter in JSON; "issueTypes" is a field of the request beside it. */
  api: keyof Filter | "issueTypes";
  /** Prefix of the enum's values, which the address leaves out. */
  prefix?: string;
}

/** In the order of the menu. */
export const fields = [
  { param: "severity", api: "severities", prefix: "SEVERITY_" },
  { param: "project", api: "repositoryNames" },
  { param: "rule", api: "rules" },
  { param: "type", api: "issueTypes", prefix: "ISSUE_TYPE_" },
  { param: "ref", api: "refs" },
  { param: "reason", api: "triageReasons", prefix: "FINDING_TRIAGE_REASON_" },
  { param: "verdict", api: "aiVerdicts", prefix: "VERDICT_" },
  { param: "category", api: "categories" },
  { param: "team", api: "teamNames" },
  { param: "tag", api: "repositoryTags" },
  { param: "policy", api: "policySlugs" },
  { param: "reachability", api: "reachabilities", prefix: "REACHABILITY_" },
  { param: "validation", api: "validationStates", prefix: "VALIDATION_STATE_" },
  { param: "secret", api: "secretTypes" },
  { param: "package", api: "dependencies" },
  { param: "cve", api: "cves" },
] as const satisfies readonly Field[];

export type FieldName = (typeof fields)[number]["param"];

/** States in the order of their tabs, with the combined states of the API. */
export const states = {
  open: ["AGGREGATE_ISSUE_STATE_OPEN"],
  reviewing: ["AGGREGATE_ISSUE_STATE_REVIEWING"],
  fixing: ["AGGREGATE_ISSUE_STATE_FIXING"],
  ignored: ["AGGREGATE_ISSUE_STATE_IGNORED_APP", "AGGREGATE_ISSUE_STATE_IGNORED_CODE"],
  provisionally_ignored: ["AGGREGATE_ISSUE_STATE_PROVISIONALLY_IGNORED_APP"],
  fixed: ["AGGREGATE_ISSUE_STATE_FIXED"],
} as const;

export type State = keyof typeof states;

export const stateNames = Object.keys(states) as State[];

export const sorts = ["since", "severity", "project", "rule", "state", "ref"] as const;
export type Sort = (typeof sorts)[number];

export const sortWords: Record<Sort, NonNullable<Schemas["findings.v1.ListIssuesRequest"]["sortBy"]>> = {
  since: "SORT_BY_RELEVANT_SINCE",
  severity: "SORT_BY_SEVERITY",
  project: "SORT_BY_REPO",
  rule: "SORT_BY_RULE",
  state: "SORT_BY_STATE",
  ref: "SORT_BY_REF",
};

export const periods = { day: "RELATIVE_SINCE_ONE_DAY", week: "RELATIVE_SINCE_ONE_WEEK", month: "RELATIVE_SINCE_ONE_MONTH" } as const;
export type Period = keyof typeof periods;

export const groupings = ["rule", "project"] as const;
export type Grouping = (typeof groupings)[number];
