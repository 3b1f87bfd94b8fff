import { useMemo } from "react";

/**
 * useParsed drops what a screen does not know from the search of its address. The router validates it, too, but keeps
 * the values of the address that the validation has dropped.
 */
export function useParsed<T>(parse: (raw: Record<string, unknown>) => T, raw: object): T {
  return useMemo(() => parse(raw as Record<string, unknown>), [parse, raw]);
}
