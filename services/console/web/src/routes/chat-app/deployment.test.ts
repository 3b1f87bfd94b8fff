import { expect, test } from "vitest";
import { deploymentOf } from "./deployment";

const state = (claims: unknown) => `h.${btoa(JSON.stringify(claims)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}.s`;

test("reads the organization", () => {
  expect(deploymentOf(state({ sub: "7", jti: "12" }))).toBe("12");
});

test.each(["", "x", "a.b.c", state(null), state({}), state({ jti: 12 })])("finds none in %s", (text) => {
  expect(deploymentOf(text)).toBe("");
});
