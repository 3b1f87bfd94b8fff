/** The parts of the screen. */
export const tabs = ["freshness", "held", "list", "pulls"] as const;
export type Tab = (typeof tabs)[number];

export const freshnessStates = ["silent", "failing", "late", "shrunk", "ok"] as const;
export type FreshnessState = (typeof freshnessStates)[number];

export const heldStates = ["pending", "confirmed", "rejected", "superseded", "all"] as const;
export type HeldState = (typeof heldStates)[number];

/** What the address says. Absent means the default. */
export interface ScansSearch {
  tab?: Tab;
  state?: FreshnessState;
  held?: HeldState;
  project?: string;
  tool?: string;
  version?: string;
  branch?: string;
  full?: true;
  problems?: true;
}

const oneOf = <T extends string>(all: readonly T[], value: unknown): T | undefined => all.find((one) => one === value);

/** Texts of the address arrive as numbers and booleans if they look like them. */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

const flag = (value: unknown): true | undefined => (value === true || value === "true" ? true : undefined);

/** Reads an address. What is unknown is dropped. */
export function parseSearch(raw: Record<string, unknown>): ScansSearch {
  const search: ScansSearch = {
    tab: oneOf(tabs, raw.tab),
    state: oneOf(freshnessStates, raw.state),
    held: oneOf(heldStates, raw.held),
    project: textOf(raw.project) || undefined,
    tool: textOf(raw.tool) || undefined,
    version: textOf(raw.version) || undefined,
    branch: textOf(raw.branch) || undefined,
    full: flag(raw.full),
    problems: flag(raw.problems),
  };
  if (!search.tool) search.version = undefined; // a version belongs to a tool
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined));
}
