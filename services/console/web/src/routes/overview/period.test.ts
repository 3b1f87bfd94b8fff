import { describe, expect, it } from "vitest";
import { compareOf, firstDay, howMany, lastDay, ofDays, parseSearch, periodOf } from "./period";

const now = Date.parse("2026-11-26T21:00:00Z");

describe("periodOf", () => {
  it("ends with today by default, and has whole days", () => {
    expect(periodOf({}, now)).toEqual({ since: "2026-10-28T00:00:00Z", until: "2026-11-27T00:00:00Z" });
    expect(periodOf({ range: "7d" }, now).since).toBe("2026-11-20T00:00:00Z");
  });
  it("ends with the day that it is as of", () => {
    expect(periodOf({ range: "7d", asOf: "2026-03-01" }, now)).toEqual({ since: "2026-02-23T00:00:00Z", until: "2026-03-02T00:00:00Z" });
  });
  it("is what the address says, to the second", () => {
    const mailed = { since: "2026-04-30T22:00:00Z", until: "2026-05-31T22:00:00Z" };
    expect(periodOf({ ...mailed, range: "7d" }, now)).toEqual(mailed);
  });
});

describe("compareOf", () => {
  it("leaves the period before to the API", () => expect(compareOf({}, periodOf({}, now))).toBeUndefined());
  it("goes back a year", () => {
    expect(compareOf({ compare: "year" }, { since: "2026-02-01T00:00:00Z", until: "2026-03-01T00:00:00Z" })).toEqual({
      since: "2025-02-01T00:00:00Z",
      until: "2025-03-01T00:00:00Z",
    });
  });
  it("takes any period", () => {
    expect(compareOf({ compareSince: "2026-01-01", compareUntil: "2026-01-08" }, periodOf({}, now))).toEqual({ since: "2026-01-01", until: "2026-01-08" });
  });
});

describe("parseSearch", () => {
  it("drops what it does not understand", () => {
    expect(parseSearch({ range: "2d", asOf: "tomorrow", since: "2026-02-01", until: "2026-01-01", compare: 1, filters: [1] })).toEqual({});
  });
  it("keeps a mailed address", () => {
    const mailed = { since: "2026-04-30T22:00:00Z", until: "2026-05-31T22:00:00Z", filters: { tags: ["pci"] } };
    expect(parseSearch(mailed)).toEqual(mailed);
  });
});

it("converts days and back", () => {
  const period = ofDays("2026-05-01", "2026-05-31");
  expect(period).toEqual({ since: "2026-05-01T00:00:00Z", until: "2026-06-01T00:00:00Z" });
  expect([firstDay(period), lastDay(period)]).toEqual(["2026-05-01", "2026-05-31"]);
});

it("counts the values of a filter", () => expect(howMany({ tags: ["a", "b"], projects: ["c"] })).toBe(3));
