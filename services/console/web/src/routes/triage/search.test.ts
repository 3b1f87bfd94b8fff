import { expect, test } from "vitest";
import type { Filter } from "./fields";
import { clean, fromView, joinList, parseSearch, splitList, statesOf, toggle, toRequest, toView, type Search } from "./search";

test("lists keep commas in values", () => {
  const values = ["a,b", "c", "d\\e"];
  expect(splitList(joinList(values))).toEqual(values);
  expect(joinList([])).toBeUndefined();
  expect(splitList(undefined)).toEqual([]);
});

test("an empty address asks for open findings of primary branches, newest first", () => {
  expect(toRequest({})).toEqual({ filter: { aggregateIssueStates: ["AGGREGATE_ISSUE_STATE_OPEN"], onPrimaryBranch: true }, issueTypes: [] });
});

test("conditions become fields of the filter", () => {
  const search = parseSearch({ severity: "critical,high", project: "acme/web", type: "sast,ai_sast", state: "any", path: "src/", since: "week", nonsense: "1", sort: "by-luck" });
  expect(search).toEqual({ severity: "critical,high", project: "acme/web", type: "sast,ai_sast", state: "any", path: "src/", since: "week" });
  expect(toRequest(search)).toEqual({
    filter: {
      severities: ["SEVERITY_CRITICAL", "SEVERITY_HIGH"],
      repositoryNames: ["acme/web"],
      filePaths: ["src/"],
      relativeSince: "RELATIVE_SINCE_ONE_WEEK",
      onPrimaryBranch: true,
    },
    issueTypes: ["ISSUE_TYPE_SAST", "ISSUE_TYPE_AI_SAST"],
  });
  expect(toRequest(search, "severity").filter.severities).toBeUndefined();
});

test("a chosen branch, or all of them, override the primary branches", () => {
  expect(toRequest({ ref: "refs/heads/x" }).filter.onPrimaryBranch).toBeUndefined();
  expect(toRequest({ everywhere: true }).filter.onPrimaryBranch).toBeUndefined();
  expect(toRequest({}, "ref").filter.onPrimaryBranch).toBeUndefined();
});

test("a project whose name is a number stays a text", () => {
  expect(parseSearch({ project: 42 }).project).toBe("42");
});

test("states that do not exist count as open", () => {
  expect(statesOf({ state: "closed" })).toEqual(["open"]);
  expect(statesOf({ state: "open,fixing" })).toEqual(["open", "fixing"]);
  expect(statesOf({ state: "any" })).toEqual([]);
});

test("a saved view leads back to the address that it was made of", () => {
  const searches: Search[] = [
    {},
    { state: "any" },
    { everywhere: true },
    { ref: "refs/pull/7/merge" },
    { state: "ignored,fixed", sort: "severity", oldest: true, group: "project" },
    { severity: "high", rule: "a\\,b,c", path: "api", since: "month", exploited: true, archived: true, type: "secrets" },
  ];
  for (const search of searches) expect(fromView("7", toView(search))).toEqual(clean({ ...search, view: "7" }));
});

test("conditions of a view that have no parameter are kept", () => {
  const search = fromView("7", { filter: { excludeHistorical: true, rulesets: [], archivedAs: "STATE_UNSPECIFIED" } as Filter });
  expect(search).toEqual({ view: "7", state: "any", everywhere: true, more: '{"excludeHistorical":true}' });
  expect(toRequest(search).filter).toEqual({ excludeHistorical: true });
  expect(toRequest({ more: "[1", state: "any", everywhere: true }).filter).toEqual({});
});

test("toggle adds and removes one value", () => {
  const added = toggle(toggle({}, "severity", "high"), "severity", "low");
  expect(added.severity).toBe("high,low");
  expect(toggle(toggle(added, "severity", "high"), "severity", "low")).toEqual({});
});
