import { expect, test } from "vitest";
import { parseSearch } from "./search";

test("unknown words and empty texts are dropped", () => {
  expect(parseSearch({ tab: "nothing", state: "worst", held: "maybe", project: "", full: "yes" })).toEqual({});
});

test("a version belongs to a tool", () => {
  expect(parseSearch({ version: "1.2" })).toEqual({});
  expect(parseSearch({ tool: "gosec", version: "" })).toEqual({ tool: "gosec" });
});

test("versions and branches that look like numbers are texts", () => {
  expect(parseSearch({ tool: "trivy", version: 0.5, branch: 2026, full: true, problems: "true" })).toEqual({ tool: "trivy", version: "0.5", branch: "2026", full: true, problems: true });
});
