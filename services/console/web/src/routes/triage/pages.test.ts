import { beforeEach, expect, test, vi } from "vitest";
import { type Fetched, keptPages, Pages, pageSize, type Start } from "./pages";
import type { Row } from "./rows";

const row = (id: number): Row => ({
  id: String(id), severity: "high", rule: "r", message: "m", path: "p", line: 1, project: "acme/web", ref: "main", type: "sast", since: "",
  status: "open", decision: { state: "FINDING_TRIAGE_STATE_UNTRIAGED", note: "" }, mayIgnore: "ignore",
});

/** A server with a list of ids; a cursor is "after the id N". */
function server(size: number) {
  const ids = Array.from({ length: size }, (_, i) => i);
  const starts: Start[] = [];
  const fetch = (start: Start, limit: number, signal: AbortSignal): Promise<Fetched> => {
    starts.push(start);
    const first = "offset" in start ? start.offset : start.cursor === "" ? 0 : ids.findIndex((id) => id > Number(start.cursor));
    const page = first < 0 ? [] : ids.slice(first, first + limit);
    const more = first >= 0 && first + limit < ids.length;
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error("aborted")));
      setTimeout(() => resolve({ rows: page.map(row), cursor: more ? String(page.at(-1)) : "" }));
    });
  };
  return { fetch, starts, remove: (id: number) => ids.splice(ids.indexOf(id), 1) };
}
beforeEach(() => void vi.useFakeTimers());
const settled = () => vi.runAllTimersAsync();

async function look(pages: Pages, first: number, last: number) {
  pages.look(first, last);
  await settled();
}

test("a jump to the last row of a page reads the next page, too", async () => {
  const { fetch, starts } = server(1_000);
  const pages = new Pages(fetch, 1_000);
  pages.look(599, 612);
  await settled();
  expect(starts).toEqual([{ offset: 500 }, { cursor: "599" }]);
  expect(pages.row(612)?.id).toBe("612");
});

test("pages in a row are read by cursor", async () => {
  const { fetch, starts } = server(350);
  const pages = new Pages(fetch, 350);
  await look(pages, 0, 150);
  await look(pages, 150, 349);
  await look(pages, 300, 349);
  expect(starts).toEqual([{ cursor: "" }, { cursor: "99" }, { cursor: "199" }, { cursor: "299" }]);
  expect(pages.row(349)?.id).toBe("349");
  expect(pages.length).toBe(350);
});

test("a page waits for the cursor of a page that waits itself", async () => {
  const { fetch, starts } = server(400);
  const pages = new Pages(fetch, 400);
  pages.look(0, 399);
  await settled();
  expect(starts).toEqual([{ cursor: "" }, { cursor: "99" }, { cursor: "199" }, { cursor: "299" }]);
});

test("a jump reads by number, and goes on by cursor", async () => {
  const { fetch, starts } = server(1_000_000);
  const pages = new Pages(fetch, 1_000_000);
  await look(pages, 100_000, 100_020);
  await look(pages, 100_090, 100_110);
  expect(starts).toEqual([{ offset: 100_000 }, { cursor: "100099" }]);
  expect(pages.row(100_000)?.id).toBe("100000");
  expect(pages.row(100_110)?.id).toBe("100110");
  expect(pages.length).toBe(1_000_000);
});

test("no finding is missed when others leave the filter", async () => {
  const { fetch, remove } = server(300);
  const pages = new Pages(fetch, 300);
  await look(pages, 0, 50);
  for (let id = 0; id < 20; id++) remove(id); // triaged
  await look(pages, 100, 150);
  expect(pages.row(100)?.id).toBe("100");
  expect(pages.row(0)?.id).toBe("0");
});

test("memory is bounded, and far pages are read again where they were", async () => {
  const { fetch, starts } = server(100_000);
  const pages = new Pages(fetch, 100_000);
  for (let first = 0; first < 5_000; first += pageSize) await look(pages, first, first + 50);
  expect(pages.heldPages).toBeLessThanOrEqual(keptPages + 1);
  expect(pages.row(0)).toBeUndefined();
  expect(pages.find("0")).toBeUndefined();
  await look(pages, 0, 50);
  expect(starts.at(-1)).toEqual({ cursor: "" });
  expect(pages.row(7)?.id).toBe("7");
});

test("a page that is read again does not repeat rows of the next one", async () => {
  const { fetch, remove } = server(3_000);
  const pages = new Pages(fetch, 3_000);
  await look(pages, 0, 150);
  await look(pages, 1_500, 2_900);
  await look(pages, 2_500, 2_900); // drops what is far
  await look(pages, 100, 150);
  for (let id = 0; id < 3; id++) remove(id);
  await look(pages, 0, 50);
  expect([pages.row(0)?.id, pages.row(96)?.id, pages.row(97), pages.row(100)?.id]).toEqual(["3", "99", undefined, "100"]);
  expect([pages.isGone(96), pages.isGone(97), pages.isGone(100), pages.isGone(1_000)]).toEqual([false, true, false, false]);
});

test("a quick scroll stops reading the pages that it passed", async () => {
  const { fetch } = server(100_000);
  const pages = new Pages(fetch, 100_000);
  pages.look(0, 50);
  pages.look(50_000, 50_050);
  await settled();
  expect(pages.row(0)).toBeUndefined();
  expect(pages.row(50_001)?.id).toBe("50001");
});

test("a changed row keeps its place", async () => {
  const { fetch } = server(10);
  const pages = new Pages(fetch, 10);
  await look(pages, 0, 9);
  const before = pages.snapshot();
  pages.patch("3", (one) => ({ ...one, status: "fixing" }));
  pages.patch("99", (one) => ({ ...one, status: "fixing" }));
  expect(pages.row(3)?.status).toBe("fixing");
  expect(pages.snapshot()).toBe(before + 1);
});

test("an error waits for another try, an empty list says so", async () => {
  let broken = true;
  const pages = new Pages(async () => {
    if (broken) throw new Error("busy");
    return { rows: [], cursor: "" };
  });
  await look(pages, 0, 20);
  expect(pages.error).toEqual(new Error("busy"));
  broken = false;
  pages.retry();
  await look(pages, 0, 20);
  expect(pages.error).toBeUndefined();
  expect(pages.isEmpty).toBe(true);
});
