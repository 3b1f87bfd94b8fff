import { formatNumber } from "@/format";

/** counted returns "1 finding" or "2 findings". n is a formatted number. */
export const counted = (n: string, one: string, many = `${one}s`): string => `${n} ${n === formatNumber(1) ? one : many}`;
