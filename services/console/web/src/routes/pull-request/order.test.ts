import { expect, test } from "vitest";
import type { Finding } from "./calls";
import { keepOrder } from "./order";
import { parseSearch } from "./search";

const finding = (id: number, status = "open") => ({ id, status }) as Finding;

test("decided rows stay where they are, gone ones leave, new ones come last", () => {
  const after = keepOrder([finding(3), finding(1), finding(2)], [finding(4), finding(2), finding(3, "ignored")]);
  expect(after.map(({ id, status }) => `${id} ${status}`)).toEqual(["3 ignored", "2 open", "4 open"]);
});

test("an address names a number or a ref", () => {
  expect(parseSearch({ project: "acme/web", number: "7", ref: "main" })).toEqual({ project: "acme/web", number: 7 });
  expect(parseSearch({ project: "acme/web", number: -1, ref: "main" })).toEqual({ project: "acme/web", ref: "main" });
  expect(parseSearch({ project: 42, number: 1.5 })).toEqual({ project: "42" });
});
