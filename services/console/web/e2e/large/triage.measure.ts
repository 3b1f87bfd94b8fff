import { expect, type Page, test } from "@playwright/test";
import type { Server } from "../server";
import { signInByLink } from "../sign-in";
import { measureBulk } from "./bulk";
import { measureKeys } from "./keys";
import { jump, measureLists } from "./lists";
import { Probe } from "./probe";
import { deployment, startLarge } from "./store";
import { Table } from "./table";

const rounds = Number(process.env.CONSOLE_BENCH_ROUNDS || "3");
/** What the tab may hold more after 100,000 rows than after 10,000. */
const heapGrowth = 5;
const nodeGrowth = 500;

let server: Server | undefined;
test.afterAll(() => server?.stop());

test("triage of a large store", async ({ page, browser }) => {
  server = await startLarge();
  await signInByLink(page, await server.palisade("console-link"));
  const probe = await Probe.on(page);
  const table = new Table();
  const began = Date.now();
  await page.goto(`${server.url}/console/${deployment}/triage?everywhere=true`);
  await page.locator("#finding-0").waitFor();
  table.once("open the screen, until its first page shows", Date.now() - began);
  await probe.answers();
  const total = Number(await page.locator("#finding-0").getAttribute("aria-setsize"));
  try {
    for (let round = 0; round < rounds; round++) {
      await measureLists(page, probe, table, round, total);
      await measureKeys(page, probe, table, round, total);
    }
    await measureMemory(page, probe, table, total);
    await measureBulk(page, server, probe, table);
  } finally {
    process.stdout.write(table.toString(`${total.toLocaleString("en")} open findings; Chromium ${browser.version()}`));
  }
  expect(table.over, "over budget").toEqual([]);
});

/** Scrolls through 100,000 rows. The memory of the tab must not grow with them. */
async function measureMemory(page: Page, probe: Probe, table: Table, total: number): Promise<void> {
  const far = Math.min(100_000, total) - 100;
  const near = Math.floor(far / 10);
  await jump(page, probe, 1);
  await probe.scroll(0, near);
  const before = await probe.memory();
  await probe.answers();
  await probe.scroll(near, far);
  const after = await probe.memory();
  const lists = (await probe.answers()).filter(({ path }) => path === "issues");
  table.add(0, "list answer, scrolling to row 100,000", lists.map(({ ms }) => ms), 100);
  table.once(`heap of the tab after ${far.toLocaleString("en")} rows`, after.megabytes, undefined, "MB");
  table.once(`heap: growth since row ${near.toLocaleString("en")}`, after.megabytes - before.megabytes, heapGrowth, "MB");
  table.once(`DOM nodes after ${far.toLocaleString("en")} rows`, after.nodes, undefined, "nodes");
  table.once(`DOM nodes: growth since row ${near.toLocaleString("en")}`, after.nodes - before.nodes, nodeGrowth, "nodes");
}
