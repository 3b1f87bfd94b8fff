import { expect, test } from "vitest";
import { longestWindow, windowAfter, windowAround } from "./window";

const total = 1_000_000;
const end = longestWindow - 1;

test("a window reaches from the first row to the last one", () => {
  expect(windowAround(0, total)).toBe(0);
  expect(windowAround(total - 1, total)).toBe(total - longestWindow);
  expect(windowAround(500_000, total)).toBe(375_000);
  expect(windowAround(10, 20)).toBe(0);
});

test("scrolling to an end of the window goes on in the list", () => {
  expect(windowAfter(0, end - 20, end, total)).toBe(124_999);
  expect(windowAfter(375_000, 0, 20, total)).toBe(250_000);
  expect(windowAfter(100_000, 0, 20, total)).toBe(0);
});

test("a window stays where its end is not on the screen, or the list ends, too", () => {
  expect(windowAfter(0, 0, 20, total)).toBe(0);
  expect(windowAfter(375_000, 1, 21, total)).toBe(375_000);
  expect(windowAfter(total - longestWindow, end - 20, end, total)).toBe(total - longestWindow);
  expect(windowAfter(0, 80, 99, 100)).toBe(0);
});

test("a scroll through all rows reaches the last one, and back the first one", () => {
  let base = 0;
  for (let n = 0; n < 20; n++) base = windowAfter(base, end - 20, end, total);
  expect(base + longestWindow).toBe(total);
  for (let n = 0; n < 20; n++) base = windowAfter(base, 0, 20, total);
  expect(base).toBe(0);
});
