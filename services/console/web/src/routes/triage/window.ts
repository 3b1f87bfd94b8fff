/** Browsers limit the height of an element: longer lists show this part of them. */
export const longestWindow = 250_000;

const clamp = (base: number, total: number): number => Math.max(0, Math.min(base, total - longestWindow));

/** Where a window begins that has a row in its middle. */
export const windowAround = (index: number, total: number): number => clamp(index - longestWindow / 2, total);

/**
 * Where the window begins when its rows from `first` to `last` are on the screen: half a window further if they are at
 * its end and the list goes on there. Otherwise it stays.
 */
export function windowAfter(base: number, first: number, last: number, total: number): number {
  const atEnd = last >= longestWindow - 1 && base + longestWindow < total;
  if (atEnd || (first === 0 && base > 0)) return windowAround(base + (atEnd ? last : first), total);
  return base;
}
