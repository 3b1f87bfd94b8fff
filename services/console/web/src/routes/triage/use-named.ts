import { useCallback, useEffect, useRef } from "react";

/** While somebody moves by keys, the address follows when they stop: browsers limit how often it may change. */
const namedAfter = 250;

/** Where list and finding are beside each other. Elsewhere the finding covers the list. */
export const isWide = (): boolean => window.matchMedia("(min-width: 48rem)").matches;

/** Changes the finding in the address, as a step of the history or not. */
export type Name = (id: string | undefined, push?: boolean) => void;

/**
 * Keeps the finding of the address and the open one the same. `named` is the one in the address, `id` the open one.
 * `open` hears what somebody else writes into the address: a link, back and forward.
 */
export function useNamed(named: string | undefined, id: string | undefined, name: Name, open: (id: string) => void): Name {
  const written = useRef<string>(undefined);
  const latest = useRef({ named, name, open });
  latest.current = { named, name, open };
  useEffect(() => {
    if (named === written.current) return;
    written.current = named;
    if (named !== undefined) latest.current.open(named);
  }, [named]);
  const write = useCallback<Name>((to, push) => {
    if (to === latest.current.named) return;
    written.current = to;
    latest.current.name(to, push);
  }, []);
  useEffect(() => {
    if (id === undefined || id === named || (named === undefined && !isWide())) return;
    const timer = setTimeout(() => write(id), namedAfter);
    return () => clearTimeout(timer);
  }, [id, named, write]);
  return write;
}
