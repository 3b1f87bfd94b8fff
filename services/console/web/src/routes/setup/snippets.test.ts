import { describe, expect, it } from "vitest";
import { quoted, snippetOf, ways } from "./snippets";

const target = { server: "https://palisade.acme.test", org: "acme", token: "sgp_secret" };

describe("snippetOf", () => {
  it("names the server in every snippet", () => {
    for (const way of ways) expect(snippetOf(way, target).text).toContain(target.server);
  });
  it("keeps the token out of files that are committed", () => {
    for (const way of ways) {
      const snippet = snippetOf(way, target);
      expect(snippet.text.includes(target.token)).toBe(snippet.file === undefined);
      expect(Boolean(snippet.secret)).toBe(snippet.file !== undefined);
    }
  });
});

it("quotes what a shell would read otherwise", () => {
  expect(["main", "a b", "it's", "$x"].map(quoted)).toEqual(["main", "'a b'", "'it'\\''s'", "'$x'"]);
});
