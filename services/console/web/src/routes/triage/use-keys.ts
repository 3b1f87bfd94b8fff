import { type DecisionName, decisionNames, decisions } from "@/parts/finding/decide";
import { type Key, useKeys } from "@/parts/keys";
import * as texts from "@/texts";
import type { Triage } from "./use-triage";

const t = texts.triage.keys;

interface Actions {
  triage: Triage;
  openCode: () => void;
  openPage: () => void;
  search: () => void;
  note: () => void;
  bulk: () => void;
  changes: () => void;
  toggle: () => void;
  range: (by: number) => void;
  escape: () => void;
}

/** The keys of the screen. Those that decide exist only for people who may. */
export function useTriageKeys({ triage, ...run }: Actions): void {
  const keyOf = (name: DecisionName): string | undefined => (decisions[name] as { key?: string }).key;
  const deciding: Key[] = [
    ...decisionNames.flatMap((name) => {
      const key = keyOf(name);
      return key ? [{ key, text: texts.triage.decide[name], run: () => triage.decide(decisions[name].change) }] : [];
    }),
    { key: "n", text: texts.triage.decide.note, run: run.note },
    { key: "z", text: t.undo, run: triage.undo },
    { key: " ", text: t.select, run: run.toggle },
    { key: "J", text: t.range, run: () => run.range(1) },
    { key: "K", text: t.rangeUp, run: () => run.range(-1) },
    { key: "A", text: t.all, run: run.bulk },
  ];
  useKeys(t.title, [
    { key: "j", text: t.next, run: () => triage.move(1) },
    { key: "k", text: t.previous, run: () => triage.move(-1) },
    ...(triage.mayTriage ? deciding : []),
    { key: "o", text: texts.triage.openCode, run: run.openCode },
    { key: "Enter", text: t.page, run: run.openPage },
    { key: "/", text: t.search, run: run.search },
    { key: "c", text: t.changes, run: run.changes },
    { key: ".", text: texts.triage.reload, run: triage.reload },
    { key: "Escape", text: t.clear, run: run.escape },
  ]);
}
