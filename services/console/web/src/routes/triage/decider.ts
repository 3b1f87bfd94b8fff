import { type Decision, type Row, sameDecision, statusAfter, type TriageReason, type TriageState } from "./rows";

/** What a key does. Without a state only the note changes. */
export interface Change {
  state?: TriageState;
  reason?: TriageReason;
  note?: string;
}

export interface Updated {
  /** "0" if nothing changed. */
  changeId: string;
  /** Exceptions that were requested instead of decisions. */
  requested: number;
  updated: number;
}

export interface Undone {
  restored: number;
  kept: number;
}

export interface Calls {
  update(ids: string[], change: Change, seen: Map<string, Decision>): Promise<Updated>;
  undo(changeId: string): Promise<Undone>;
}

/** The rows that show decisions at once. */
export interface Rows {
  find(id: string): Row | undefined;
  patch(id: string, change: (row: Row) => Row): void;
}

export type Outcome =
  | { kind: "decided"; entry: Entry; updated: number }
  | { kind: "requested"; entry: Entry; requested: number }
  | { kind: "unchanged"; entry: Entry }
  | { kind: "overtaken"; entry: Entry }
  | { kind: "refused"; entry?: Entry; error: unknown }
  | { kind: "undone"; entry?: Entry; undone: Undone };

/** A decision of this screen. */
export interface Entry {
  ids: string[];
  change: Change;
  before: Map<string, Row>;
  seen: Map<string, Decision>;
  changeId?: string;
}

/** The rule of a decision about one finding. */
export const ruleOf = (entry: Entry): string => (entry.ids.length === 1 && entry.before.get(entry.ids[0] ?? "")?.rule) || "";

const isConflict = (error: unknown): boolean => error instanceof Error && "status" in error && error.status === 409;

const apply = (row: Row, change: Change): Row => {
  const decision: Decision = {
    state: change.state ?? row.decision.state,
    reason: change.state ? change.reason : row.decision.reason,
    note: change.note || row.decision.note,
  };
  return { ...row, decision, status: statusAfter(row, decision) };
};

/**
 * Makes decisions at once on the screen and one after the other on the server. It sends the decisions that the person
 * saw, so that the server refuses to overwrite one that somebody else has just made.
 */
export class Decider {
  private queue: Promise<void> = Promise.resolve();
  private entries: Entry[] = [];
  /** What the server is known to have, for findings that this screen decides about. */
  private stored = new Map<string, Decision>();
  private waiting = new Map<string, number>();

  constructor(private calls: Calls, private rows: Rows, private report: (outcome: Outcome) => void) {}

  /** Whether a finding has a decision that the server has not confirmed. */
  isWaiting(id: string): boolean {
    return this.waiting.has(id);
  }
  /** Resolves when the server has answered everything. */
  get settled(): Promise<void> {
    return this.queue;
  }

  /** Somebody else decided: this is what the person sees now. */
  sees(id: string, decision: Decision): void {
    if (!this.waiting.has(id)) this.stored.delete(id);
    else this.stored.set(id, decision);
  }

  /** `seen` are the decisions about findings whose rows may be out of memory. */
  decide(ids: string[], change: Change, seen: Map<string, Decision> = new Map()): void {
    const entry: Entry = { ids, change, before: new Map(), seen: new Map(seen) };
    for (const id of ids) {
      const row = this.rows.find(id);
      if (row) {
        entry.before.set(id, row);
        if (!this.stored.has(id)) this.stored.set(id, row.decision);
        this.rows.patch(id, (now) => apply(now, change));
      }
    }
    this.entries.push(entry);
    if (this.entries.length > 200) this.entries.shift();
    this.enqueue(ids, () => this.send(entry));
  }

  /** A change of this screen that was made without it, such as one of everything that matches. The next undo takes it back. */
  made(changeId: string): void {
    this.entries.push({ ids: [], change: {}, before: new Map(), seen: new Map(), changeId });
  }

  /** Takes the latest decision of this screen back. */
  undo(): Entry | undefined {
    const entry = this.entries.at(-1);
    if (entry?.changeId && entry.ids.length === 0) this.undoChange(entry.changeId);
    else if (entry) this.undoEntry(entry);
    return entry;
  }

  /** Takes one decision of this screen back, once. */
  undoEntry(entry: Entry): void {
    if (!this.entries.includes(entry)) return;
    this.forget(entry);
    for (const [id, before] of entry.before) this.rows.patch(id, (now) => ({ ...now, decision: before.decision, status: before.status }));
    this.enqueue(entry.ids, async () => {
      if (!entry.changeId) return; // it was refused
      try {
        const undone = await this.calls.undo(entry.changeId);
        for (const [id, before] of entry.before) this.stored.set(id, before.decision);
        this.report({ kind: "undone", entry, undone });
      } catch (error) {
        for (const id of entry.before.keys()) this.rows.patch(id, (now) => apply(now, entry.change));
        this.entries.push(entry);
        this.report({ kind: "refused", entry, error });
      }
    });
  }

  /** Undoes any change. The rows are read again by whoever shows them. */
  undoChange(changeId: string): void {
    this.entries = this.entries.filter((entry) => entry.changeId !== changeId);
    this.enqueue([], async () => {
      try {
        this.report({ kind: "undone", undone: await this.calls.undo(changeId) });
      } catch (error) {
        this.report({ kind: "refused", error });
      }
    });
  }

  private enqueue(ids: string[], task: () => Promise<void>): void {
    for (const id of ids) this.waiting.set(id, (this.waiting.get(id) ?? 0) + 1);
    this.queue = this.queue.then(task).finally(() => {
      for (const id of ids) {
        const left = (this.waiting.get(id) ?? 1) - 1;
        if (left > 0) this.waiting.set(id, left);
        else {
          this.waiting.delete(id);
          this.stored.delete(id);
        }
      }
    });
  }

  private async send(entry: Entry): Promise<void> {
    const seen = new Map(entry.seen);
    for (const id of entry.ids) {
      const stored = this.stored.get(id);
      if (stored) seen.set(id, stored);
    }
    entry.seen = seen;
    try {
      const updated = await this.calls.update(entry.ids, entry.change, seen);
      if (updated.requested > 0) {
        this.revert(entry);
        this.report({ kind: "requested", entry, requested: updated.requested });
      } else if (updated.changeId === "0") {
        this.forget(entry);
        this.report({ kind: "unchanged", entry });
      } else {
        entry.changeId = updated.changeId;
        for (const [id, before] of entry.before) this.stored.set(id, apply(before, entry.change).decision);
        this.report({ kind: "decided", entry, updated: updated.updated });
      }
    } catch (error) {
      this.revert(entry);
      if (isConflict(error)) this.report({ kind: "overtaken", entry });
      else this.report({ kind: "refused", entry, error });
    }
  }

  /** Shows what was before a decision, unless a later one is shown by now. */
  private revert(entry: Entry): void {
    this.forget(entry);
    for (const [id, before] of entry.before) {
      const after = apply(before, entry.change).decision;
      this.rows.patch(id, (now) => (sameDecision(now.decision, after) ? { ...now, decision: before.decision, status: before.status } : now));
    }
  }

  private forget(entry: Entry): void {
    this.entries = this.entries.filter((one) => one !== entry);
  }
}
