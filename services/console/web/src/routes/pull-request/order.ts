import type { Finding } from "./calls";

/**
 * The findings in the order that the person saw first. The server lists ignored ones last, but a row must not move away
 * while somebody decides about it.
 */
export function keepOrder(before: Finding[], now: Finding[]): Finding[] {
  const fresh = new Map(now.map((one) => [one.id, one]));
  const kept = before.flatMap(({ id }) => fresh.get(id) ?? []);
  const known = new Set(before.map(({ id }) => id));
  return [...kept, ...now.filter(({ id }) => !known.has(id))];
}
