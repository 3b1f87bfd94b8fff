/** A pull request by its number, or another ref of a project. Without a project: the list of pull requests. */
export interface PullRequestSearch {
  project?: string;
  number?: number;
  ref?: string;
  /** The selected finding. */
  finding?: string;
}

export function parseSearch(raw: Record<string, unknown>): PullRequestSearch {
  const text = (value: unknown): string | undefined => (typeof value === "string" || typeof value === "number" ? String(value) : undefined) || undefined;
  const number = Number(raw.number);
  const search: PullRequestSearch = { project: text(raw.project), finding: text(raw.finding) };
  if (Number.isSafeInteger(number) && number > 0) search.number = number;
  else search.ref = text(raw.ref);
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined));
}
