import { expect, test } from "vitest";
import { beginningOf } from "./message";

test("short messages are shown as they are", () => {
  expect(beginningOf("")).toBeUndefined();
  expect(beginningOf("a".repeat(640))).toBeUndefined();
  expect(beginningOf("line\n".repeat(10))).toBeUndefined();
});

test("long messages are cut, by characters and by lines", () => {
  expect(beginningOf("a".repeat(100_000))).toBe(`${"a".repeat(600)}…`);
  expect(beginningOf("x\n".repeat(1_000))).toBe(`${Array(12).fill("x").join("\n")}…`);
  expect(beginningOf(`${"a".repeat(599)}😀${"b".repeat(100)}`)).toBe(`${"a".repeat(599)}…`);
});
