import type { Schemas } from "@/api/client";
import { type Field, fields, type FieldName, type Filter, type Grouping, groupings, type Period, periods, type Sort, sorts, sortWords, type State, stateNames, states } from "./fields";

/**
 * The address of the screen. Lists are one text with commas, so that an address stays readable; `\,` is a comma in a
 * value. What is absent has its default.
 */
export type Search = Partial<Record<FieldName, string>> & {
  /** States with commas; "any" for all. Default: open. */
  state?: string;
  /** Part of the file path. */
  path?: string;
  since?: Period;
  /** All branches and pull requests. Default: primary branches, where each finding stands once. */
  everywhere?: true;
  exploited?: true;
  archived?: true;
  sort?: Sort;
  oldest?: true;
  group?: Grouping;
  /** Id of the saved view that the address began with. */
  view?: string;
  /** Conditions of a saved view that have no parameter: JSON of IssuesFilter. */
  more?: string;
  /** Id of the open finding. */
  finding?: string;
};

/** The last address of the screen by deployment, for the way back to it. */
export const lastSearches = new Map<string, Search>();

export type IssueType = NonNullable<Schemas["findings.v1.ListIssuesRequest"]["issueType"]>;
export interface Request {
  filter: Filter;
  issueTypes: IssueType[];
}
export type ViewContent = Schemas["findings.v1.SavedViewContent"];

export const splitList = (text: string | undefined): string[] =>
  text ? text.split(/(?<!\\),/).map((part) => part.replaceAll("\\,", ",")).filter(Boolean) : [];
export const joinList = (values: readonly string[]): string | undefined =>
  values.length ? values.map((value) => value.replaceAll(",", "\\,")).join(",") : undefined;

const oneOf = <T extends string>(all: readonly T[], value: unknown): T | undefined => all.find((one) => one === value);
const flag = (value: unknown): true | undefined => (value === true || value === "true" || undefined);

/** Reads an address. What is unknown is dropped: addresses are written by hand, too. */
export function parseSearch(raw: Record<string, unknown>): Search {
  const text = (name: string): string | undefined => {
    const value = raw[name];
    if (typeof value === "number" || typeof value === "boolean") return String(value);
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const search: Search = {
    state: text("state"),
    path: text("path"),
    since: oneOf(Object.keys(periods) as Period[], raw.since),
    everywhere: flag(raw.everywhere),
    exploited: flag(raw.exploited),
    archived: flag(raw.archived),
    sort: oneOf(sorts, raw.sort),
    oldest: flag(raw.oldest),
    group: oneOf(groupings, raw.group),
    view: text("view"),
    more: text("more"),
    finding: /^[1-9]\d{0,18}$/.exec(text("finding") ?? "")?.[0],
  };
  for (const { param } of fields) search[param] = text(param);
  return clean(search);
}

/** Leaves out what is absent, so that equal searches are equal texts. */
export function clean(search: Search): Search {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined && value !== "").sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The states that the address names. Empty means any. */
export function statesOf(search: Search): State[] {
  if (search.state === "any") return [];
  const named = splitList(search.state).filter((name): name is State => stateNames.includes(name as State));
  return named.length ? named : ["open"];
}

const spell = ({ prefix }: Field, value: string): string => (prefix ? prefix + value.toUpperCase() : value);
const unspell = ({ prefix }: Field, value: string): string => (prefix && value.startsWith(prefix) ? value.slice(prefix.length).toLowerCase() : value);

function moreOf(search: Search): Filter {
  try {
    const more: unknown = JSON.parse(search.more ?? "{}");
    return typeof more === "object" && more !== null && !Array.isArray(more) ? (more as Filter) : {};
  } catch {
    return {};
  }
}

/** Whether the list has primary branches only: decisions also apply to the same findings elsewhere. A chosen branch overrides it. */
export const onlyPrimary = (search: Search): boolean => !search.everywhere && !search.ref;

/** The filter of the API for an address. `without` leaves out conditions: facets of a field are counted without itself. */
export function toRequest(search: Search, without?: FieldName | "state"): Request {
  const filter: Record<string, unknown> = { ...moreOf(search) };
  let issueTypes: IssueType[] = [];
  for (const field of fields) {
    const values = field.param === without ? [] : splitList(search[field.param]).map((value) => spell(field, value));
    if (values.length === 0) continue;
    if (field.api === "issueTypes") issueTypes = values as IssueType[];
    else filter[field.api] = values;
  }
  if (without !== "state") {
    const chosen = statesOf(search).flatMap((name) => states[name] as readonly string[]);
    if (chosen.length) filter.aggregateIssueStates = chosen;
  }
  if (search.path) filter.filePaths = [search.path];
  if (search.since) filter.relativeSince = periods[search.since];
  if (onlyPrimary(search) && without !== "ref") filter.onPrimaryBranch = true;
  if (search.exploited) filter.knownExploit = true;
  if (search.archived) filter.includeArchived = true;
  return { filter: filter as Filter, issueTypes };
}

type Order = Pick<Schemas["findings.v1.ListIssuesRequest"], "sortBy" | "sortDirection">;

export const orderOf = (search: Search): Order => ({
  sortBy: sortWords[search.sort ?? "since"],
  sortDirection: search.oldest ? "SORT_DIRECTION_ASC" : "SORT_DIRECTION_DESC",
});

const groupWords: Record<Grouping, "GROUP_BY_RULE" | "GROUP_BY_PROJECT"> = { rule: "GROUP_BY_RULE", project: "GROUP_BY_PROJECT" };

/** What a saved view keeps of an address. */
export function toView(search: Search): ViewContent {
  const { filter, issueTypes } = toRequest(search);
  const order = orderOf(search);
  return {
    filter,
    issue_types: issueTypes,
    sort_by: order.sortBy as ViewContent["sort_by"],
    sort_direction: order.sortDirection as ViewContent["sort_direction"],
    ...(search.group && { group_by: groupWords[search.group] }),
  };
}

/** The address of a saved view. Conditions without a parameter go into `more`. */
export function fromView(id: string, view: ViewContent | undefined): Search {
  const rest: Record<string, unknown> = { ...view?.filter };
  const take = (name: string): unknown => {
    const value = rest[name];
    delete rest[name];
    return value;
  };
  const search: Search = { view: id, state: "any" };
  for (const field of fields) {
    const values = field.api === "issueTypes" ? view?.issue_types : take(field.api);
    if (Array.isArray(values)) search[field.param] = joinList(values.map((value) => unspell(field, String(value))));
  }
  const combined = take("aggregateIssueStates");
  if (Array.isArray(combined) && combined.length) {
    const whole = stateNames.filter((name) => states[name].every((one) => combined.includes(one)));
    if (whole.flatMap((name) => states[name] as readonly string[]).length === combined.length) search.state = whole.length === 1 && whole[0] === "open" ? undefined : joinList(whole);
    else rest.aggregateIssueStates = combined;
  }
  if (Array.isArray(rest.filePaths)) search.path = String((take("filePaths") as unknown[])[0] ?? "") || undefined;
  search.since = (Object.keys(periods) as Period[]).find((name) => periods[name] === rest.relativeSince);
  if (search.since) take("relativeSince");
  if (take("onPrimaryBranch") !== true && !search.ref) search.everywhere = true;
  search.archived = flag(take("includeArchived"));
  if (rest.knownExploit === true) search.exploited = flag(take("knownExploit"));
  search.sort = sorts.find((name) => name !== "since" && sortWords[name] === view?.sort_by);
  search.oldest = view?.sort_direction === "SORT_DIRECTION_ASC" || undefined;
  search.group = groupings.find((name) => groupWords[name] === view?.group_by);
  const more = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined && value !== null && value !== false && value !== "" && !isUnset(value)));
  if (Object.keys(more).length) search.more = JSON.stringify(more);
  return clean(search);
}

/** The server writes fields that are not set as empty lists and as the zero value of their enum. */
const isUnset = (value: unknown): boolean => (Array.isArray(value) && value.length === 0) || (typeof value === "string" && value.endsWith("_UNSPECIFIED"));

/** Adds a value to a condition, or removes it. */
export function toggle(search: Search, param: FieldName, value: string): Search {
  const values = splitList(search[param]);
  const next = values.includes(value) ? values.filter((one) => one !== value) : [...values, value];
  return clean({ ...search, [param]: joinList(next) });
}

/** Whether an address has conditions besides the state. */
export const isFiltered = (search: Search): boolean =>
  fields.some(({ param }) => search[param]) || Boolean(search.path || search.since || search.exploited || search.archived || search.more);
