import { expect, test } from "vitest";
import { type Calls, Decider, type Outcome, ruleOf } from "./decider";
import type { Decision, Row } from "./rows";

const untriaged: Decision = { state: "FINDING_TRIAGE_STATE_UNTRIAGED", note: "" };
const falsePositive = { state: "FINDING_TRIAGE_STATE_IGNORED", reason: "FINDING_TRIAGE_REASON_FALSE_POSITIVE" } as const;
const fixing = { state: "FINDING_TRIAGE_STATE_FIXING" } as const;

const failure = (status: number) => Object.assign(new Error("refused"), { status });

function screen(answer: Partial<Calls> = {}) {
  const rows = new Map<string, Row>(
    ["1", "2"].map((id) => [id, { id, severity: "high", rule: "r", message: "m", path: "p", line: 1, project: "w", ref: "main", type: "sast", since: "", status: "open", decision: untriaged, mayIgnore: "ignore" }]),
  );
  const sent: Array<[string, unknown]> = [];
  let changes = 0;
  const calls: Calls = {
    update: async (ids, change, seen) => {
      sent.push(["update " + ids.join(" "), [...seen].map(([id, one]) => `${id} ${one.state.slice(21)}`)]);
      return answer.update ? answer.update(ids, change, seen) : { changeId: String(++changes), requested: 0, updated: ids.length };
    },
    undo: async (id) => {
      sent.push(["undo " + id, []]);
      return answer.undo ? answer.undo(id) : { restored: 1, kept: 0 };
    },
  };
  const outcomes: Outcome[] = [];
  const decider = new Decider(calls, { find: (id) => rows.get(id), patch: (id, change) => void rows.set(id, change(rows.get(id)!)) }, (one) => outcomes.push(one));
  return { rows, sent, outcomes, decider, kinds: () => outcomes.map((one) => one.kind) };
}

test("a decision shows at once, and says what the person saw", async () => {
  const { rows, sent, decider, kinds } = screen();
  decider.decide(["1"], falsePositive);
  expect(rows.get("1")).toMatchObject({ status: "ignored_app", decision: falsePositive });
  expect(decider.isWaiting("1")).toBe(true);
  await decider.settled;
  expect(sent).toEqual([["update 1", ["1 UNTRIAGED"]]]);
  expect(decider.isWaiting("1")).toBe(false);
  expect(kinds()).toEqual(["decided"]);
});

test("undo takes a change of everything that matches back before earlier decisions", async () => {
  const { sent, decider, outcomes } = screen();
  decider.decide(["1"], falsePositive);
  await decider.settled;
  decider.made("77");
  decider.undo();
  decider.undo();
  await decider.settled;
  expect(sent.map(([call]) => call)).toEqual(["update 1", "undo 77", "undo 1"]);
  expect(outcomes.map((one) => one.kind === "undone" && one.entry?.ids)).toEqual([false, undefined, ["1"]]);
});

test("a second decision before the first answer is based on the first", async () => {
  const { rows, sent, decider } = screen();
  decider.decide(["1"], falsePositive);
  decider.decide(["1"], fixing);
  await decider.settled;
  expect(sent).toEqual([["update 1", ["1 UNTRIAGED"]], ["update 1", ["1 IGNORED"]]]);
  expect(rows.get("1")).toMatchObject({ status: "fixing", decision: { ...fixing, reason: undefined } });
});

test("undo goes back one decision after the other, also before the answer", async () => {
  const { rows, sent, decider, kinds } = screen();
  decider.decide(["1"], falsePositive);
  decider.decide(["2"], fixing);
  decider.undo();
  expect([rows.get("1")?.status, rows.get("2")?.status]).toEqual(["ignored_app", "open"]);
  decider.undo();
  decider.undo();
  await decider.settled;
  expect(rows.get("1")).toMatchObject({ status: "open", decision: untriaged });
  expect(sent.map(([call]) => call)).toEqual(["update 1", "update 2", "undo 2", "undo 1"]);
  expect(kinds()).toEqual(["decided", "decided", "undone", "undone"]);
  expect(decider.undo()).toBeUndefined();
});

test("a decision of somebody else is not overwritten: the row shows what was, and the screen is told", async () => {
  const { rows, decider, outcomes } = screen({ update: async () => { throw failure(409); } });
  decider.decide(["1"], falsePositive);
  await decider.settled;
  expect(rows.get("1")).toMatchObject({ status: "open", decision: untriaged });
  expect(outcomes[0]).toMatchObject({ kind: "overtaken", entry: { ids: ["1"], change: falsePositive } });
  expect(decider.undo()).toBeUndefined();
});

test("a refusal keeps a later decision on the screen", async () => {
  let first = true;
  const { rows, decider, kinds } = screen({
    update: async () => {
      if (!first) return { changeId: "2", requested: 0, updated: 1 };
      first = false;
      throw failure(403);
    },
  });
  decider.decide(["1"], falsePositive);
  decider.decide(["1"], fixing);
  await decider.settled;
  expect(kinds()).toEqual(["refused", "decided"]);
  expect(rows.get("1")?.status).toBe("fixing");
});

test("a request for an exception decides nothing", async () => {
  const { rows, decider, kinds } = screen({ update: async () => ({ changeId: "0", requested: 1, updated: 0 }) });
  decider.decide(["1"], falsePositive);
  await decider.settled;
  expect(kinds()).toEqual(["requested"]);
  expect(rows.get("1")?.status).toBe("open");
  expect(decider.undo()).toBeUndefined();
});

test("an undo that is refused shows the decision again", async () => {
  const { rows, decider, kinds } = screen({ undo: async () => { throw failure(400); } });
  decider.decide(["1"], falsePositive);
  await decider.settled;
  decider.undo();
  expect(rows.get("1")?.status).toBe("open");
  await decider.settled;
  expect(rows.get("1")?.status).toBe("ignored_app");
  expect(kinds()).toEqual(["decided", "refused"]);
  expect(decider.undo()?.changeId).toBe("1");
});

test("a note keeps the state; fixed findings stay fixed", async () => {
  const { rows, decider } = screen();
  rows.set("2", { ...rows.get("2")!, status: "fixed" });
  decider.decide(["1", "2"], { note: "look" });
  decider.decide(["2"], falsePositive);
  await decider.settled;
  expect(rows.get("1")).toMatchObject({ status: "open", decision: { ...untriaged, note: "look" } });
  expect(rows.get("2")).toMatchObject({ status: "fixed", decision: { ...falsePositive, note: "look" } });
});

test("a decision about one finding is known by its change, one about several is not", async () => {
  let change = 700;
  const { decider, outcomes } = screen({ update: async (ids) => ({ changeId: String(++change), requested: 0, updated: ids.length }) });
  decider.decide(["1"], fixing);
  decider.decide(["1", "2"], falsePositive);
  await decider.settled;
  expect(outcomes.map(({ entry }) => entry && ruleOf(entry))).toEqual(["r", ""]);
});
