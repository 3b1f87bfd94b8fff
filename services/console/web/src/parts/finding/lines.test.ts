import { expect, test } from "vitest";
import { languageOf } from "./languages";
import { linesOf, longestCode, longestLine } from "./lines";

test("numbers that the scanner wrote are taken out of the code", () => {
  expect(linesOf("38: if err != nil {\n39: \tos.Remove(name)\n40: }\n", { line: 39, endLine: 39 })).toEqual([
    { number: 38, text: "if err != nil {", marked: false },
    { number: 39, text: "\tos.Remove(name)", marked: true },
    { number: 40, text: "}", marked: false },
  ]);
});

test("code that is the place itself begins at its line", () => {
  expect(linesOf("a\r\nb", { line: 7, endLine: 8 })).toEqual([{ number: 7, text: "a", marked: true }, { number: 8, text: "b", marked: true }]);
  expect(linesOf("a", { line: 7, endLine: 0 })[0]).toEqual({ number: 7, text: "a", marked: true });
});

test("code around a place has no numbers, because nobody said where it begins", () => {
  expect(linesOf("a\nb\nc", { line: 7, endLine: 7 })).toEqual(["a", "b", "c"].map((text) => ({ number: undefined, text, marked: false })));
});

test("YAML and dates are not taken for numbers", () => {
  expect(linesOf("80: web\n443: tls", { line: 3, endLine: 4 }).map((line) => line.text)).toEqual(["80: web", "443: tls"]);
});

test("long code is cut", () => {
  expect(linesOf("x".repeat(longestCode * 2), { line: 1, endLine: 1 })[0]?.text).toHaveLength(longestLine);
});

test("languages by file name", () => {
  expect(["a/b.go", "Dockerfile.prod", "x.TSX", "main.cpp", "Makefile", "deploy.tf", "Gemfile", "a.min.js"].map(languageOf)).toEqual(["go", "docker", "tsx", "c", undefined, "terraform", "ruby", "tsx"]);
});
