import { parseSearchWith, stringifySearchWith } from "@tanstack/react-router";
import { expect, test } from "vitest";
import { valueOf } from "./search";

const parse = parseSearchWith(valueOf);
const stringify = stringifySearchWith(JSON.stringify);

test("ids and names survive, with quotation marks and without", () => {
  expect(parse("?id=1")).toEqual({ id: 1 }); // the router's own decoding; screens take it as a text
  expect(parse('?id="1"')).toEqual({ id: "1" });
  expect(parse("?project=007")).toEqual({ project: "007" });
  expect(parse('?project="broken')).toEqual({ project: '"broken' });
  expect(stringify({ id: "1" })).toBe("?id=1");
});

test("structures and flags survive", () => {
  const search = { filters: { severities: ["high"] }, archived: true };
  expect(parse(stringify(search))).toEqual(search);
});
