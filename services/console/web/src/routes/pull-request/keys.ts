import { decisionNames, decisions } from "@/parts/finding/decide";
import type { Key } from "@/parts/keys";
import * as texts from "@/texts";
import type { Decisions } from "./use-decisions";

/** The same keys as on the triage screen. */
export function decidingKeys(list: Decisions, note: () => void): Key[] {
  const keys = decisionNames.flatMap((name): Key[] => {
    const decision = decisions[name];
    return "key" in decision ? [{ key: decision.key, text: texts.triage.decide[name], run: () => list.decide(decision.change) }] : [];
  });
  return [...keys, { key: "n", text: texts.triage.decide.note, run: note }, { key: "z", text: texts.triage.keys.undo, run: list.undo }];
}
