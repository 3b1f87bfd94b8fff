import type { Tone } from "@/parts/badge";
import { Badge } from "@/parts/badge";
import * as texts from "@/texts";
import type { FreshnessState } from "./search";
import { freshnessStates } from "./search";

export const stateTones: Record<FreshnessState, Tone> = { silent: "critical", failing: "bad", late: "warn", shrunk: "warn", ok: "good" };

export const isFreshnessState = (word: string): word is FreshnessState => (freshnessStates as readonly string[]).includes(word);

/** The state of an analysis. */
export function StateBadge({ state }: { state: string }) {
  return isFreshnessState(state) ? <Badge tone={stateTones[state]}>{texts.scans.state[state]}</Badge> : <Badge>{state}</Badge>;
}

type Status = keyof typeof texts.scans.status;
const statusTones: Record<Status, Tone> = { RUNNING: "accent", COMPLETED: "good", PENDING: "info", CANCELLED: "info", ERROR: "bad", NEVER_FINISHED: "bad" };
const isStatus = (word: string): word is Status => Object.hasOwn(texts.scans.status, word);

/** The status of a scan, as the API spells it: SCAN_STATUS_COMPLETED. */
export function StatusBadge({ status }: { status: string | undefined }) {
  const word = (status ?? "").replace(/^SCAN_STATUS_/, "");
  return isStatus(word) ? <Badge tone={statusTones[word]}>{texts.scans.status[word]}</Badge> : null;
}
