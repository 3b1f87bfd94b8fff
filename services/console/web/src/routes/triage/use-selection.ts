import { useRef } from "react";
import { useToast } from "@/parts/toast";
import { formatNumber } from "@/format";
import * as texts from "@/texts";
import type { Decision } from "./rows";
import { largestSelection, type Triage } from "./use-triage";

/** Selects rows one by one, and from the last one up to another. Keeps the decisions that the person saw. */
export function useSelection({ pages, active, selected, setSelected, setActive, mayTriage }: Triage) {
  const toast = useToast();
  const anchor = useRef(0);
  const add = (into: Map<string, Decision>, from: number, to: number) => {
    for (let index = Math.min(from, to); index <= Math.max(from, to) && into.size < largestSelection; index++) {
      const row = pages.row(index);
      if (row) into.set(row.id, row.decision);
    }
    if (into.size >= largestSelection) toast({ tone: "bad", text: texts.triage.selection.limit(formatNumber(largestSelection)) });
    setSelected(into);
  };
  return {
    toggle: (index: number, range: boolean) => {
      const row = pages.row(index);
      if (!row || !mayTriage) return;
      const next = new Map(selected);
      if (range) return add(next, anchor.current, index);
      anchor.current = index;
      if (next.delete(row.id)) setSelected(next);
      else add(next, index, index);
    },
    extend: (by: number) => {
      const to = Math.max(0, Math.min(active + by, pages.length - 1));
      add(new Map(selected), active, to);
      anchor.current = to;
      setActive(to);
    },
  };
}
