import { readFileSync } from "node:fs";
import { projects } from "./fill";
import { expect, test } from "./test";

test("a pull request: open the link, one key", async ({ page, server }) => {
  await page.goto(`/console/default/pull-requests?project=${encodeURIComponent(projects.main)}&number=7`);
  const open = page.getByRole("listbox").locator("[aria-current=true]");
  await expect(open).toContainText("added_0.go");
  await expect(open).toContainText("integer overflow conversion");
  await expect(page.getByRole("region", { name: "Preview" })).toBeVisible();
  await page.keyboard.press("f");
  const ignored = { repositoryNames: [projects.main], refs: ["refs/pull/7/merge"], aggregateIssueStates: ["AGGREGATE_ISSUE_STATE_IGNORED_APP"] };
  const issues = async () => (await server.call<{ issues: Array<{ issue: { filePath: string } }> }>("POST", "/api/agent/deployments/1/issues", { filter: ignored })).issues;
  await expect.poll(async () => (await issues()).map(({ issue }) => issue.filePath)).toEqual(["apis/added_0.go"]);
});

interface Overview { thisPeriod: { open: { total: number }; opened: number; fixed: number; ignored: number } }

test("the report in two clicks: what is printed and the CSV have the numbers of the API", async ({ page, server }) => {
  await page.goto("/console/default/triage");
  await page.evaluate(() => (window.print = () => void ((window as unknown as { printed: number }).printed = 1)));
  let clicks = 0;
  const click = async (role: "link" | "button", name: string) => {
    clicks++;
    await page.getByRole(role, { name, exact: true }).click();
  };
  const request = page.waitForRequest((one) => one.url().endsWith("/reports/overview"));
  await click("link", "Overview");
  const body: unknown = (await request).postDataJSON();
  const { thisPeriod } = await server.call<Overview>("POST", "/api/reporting/1/reports/overview", body);
  expect(thisPeriod.open.total).toBeGreaterThan(1_000);
  const numberOf = async (term: string) => Number((await page.locator("dt", { hasText: term }).locator("xpath=following-sibling::dd[1]").innerText()).replaceAll(/\D/g, ""));
  const shown = async () => ({ open: await numberOf("Open findings"), opened: await numberOf("Opened"), fixed: await numberOf("Fixed") });
  const expected = { open: thisPeriod.open.total, opened: thisPeriod.opened, fixed: thisPeriod.fixed };
  await expect.poll(shown).toEqual(expected);
  await click("button", "Print");
  expect(clicks).toBe(2);
  expect(await page.evaluate(() => (window as unknown as { printed?: number }).printed)).toBe(1);

  // What comes on paper: the numbers without navigation and controls.
  await page.emulateMedia({ media: "print" });
  expect(await shown()).toEqual(expected);
  await expect(page.getByRole("navigation", { name: "Main" })).toBeHidden();
  await expect(page.getByLabel("Period")).toBeHidden();
  await page.screenshot({ path: `${import.meta.dirname}/.output/screens/overview-print.png`, fullPage: true });
  await page.emulateMedia({ media: "screen" });

  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "CSV", exact: true }).click();
  const lines = readFileSync(await (await download).path(), "utf8").replace("\ufeff", "").trim().split("\r\n").map((line) => line.split(","));
  expect(lines[0]).toEqual(["report", "since", "until", "name", "value"]);
  const value = (name: string) => lines.find(([report, , , what]) => report === "overview" && what === name)?.[4];
  expect({ open: Number(value("open.total")), opened: Number(value("opened")), fixed: Number(value("fixed")) }).toEqual(expected);
});

test("the open findings of the overview are the ones that triage lists", async ({ page, server }) => {
  const list = page.getByRole("listbox", { name: "Findings" });
  const listed = async () => Number(await list.locator("[aria-current=true]").getAttribute("aria-setsize"));
  const numberIn = async (text: Promise<string>) => Number((await text).replaceAll(/\D/g, ""));
  const code = { findingTypes: ["FINDING_TYPE_CODE"], findingSeverities: ["FINDING_SEVERITY_HIGH", "FINDING_SEVERITY_MEDIUM"], teams: ["everything"] };
  for (const filters of [undefined, { projects: [projects.frontend] }, code]) {
    const address = `/console/default/overview${filters ? `?filters=${encodeURIComponent(JSON.stringify(filters))}` : ""}`;
    await page.goto(address);
    const open = page.locator("dt", { hasText: "Open findings" }).locator("xpath=following-sibling::dd[1]");
    await expect(open).toHaveText(/^[\d,]+$/);
    const number = await numberIn(open.innerText());
    expect(number).toBeGreaterThan(50);
    await page.getByRole("link", { name: "Show them in triage" }).click();
    await expect.poll(listed).toBe(number);
    await page.goto(address);
    for (const table of ["Projects with the most open findings", "Rules with the most open findings"]) {
      const link = page.getByRole("region", { name: table }).getByRole("row").nth(1).getByRole("link").last();
      const own = await numberIn(link.innerText());
      await link.click();
      await expect.poll(listed, table).toBe(own);
      await page.goto(address);
    }
  }
  // Triage has the same list among its views.
  await page.goto("/console/default/overview");
  const all = page.locator("dt", { hasText: "Open findings" }).locator("xpath=following-sibling::dd[1]");
  await expect(all).toHaveText(/^[\d,]+$/);
  const number = await numberIn(all.innerText());
  await page.goto("/console/default/triage");
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("menuitemradio", { name: "Open, reviewing and to fix" }).or(page.getByRole("menuitemcheckbox", { name: "Open, reviewing and to fix" })).click();
  await expect.poll(listed).toBe(number);
  // A day of the past has no list.
  await page.goto("/console/default/overview?asOf=2026-01-01");
  await expect(page.getByRole("main")).not.toContainText("Show them in triage");
  expect(server.printed).not.toContain("level=ERROR");

  // The legend and the table of a chart begin with the highest severity.
  await page.goto("/console/default/overview");
  const head = page.getByRole("table", { name: /^Open findings at the end of each/ }).getByRole("columnheader");
  await expect(head).toHaveText(["Period", "Critical", "High", "Medium", "Low"]);
});

interface Held { held_closes: Array<{ id: number; state: string }> }

test("closes that are held back: one click keeps the findings open, or closes them", async ({ page, server }) => {
  const held = async () => (await server.call<Held>("GET", "/api/v1/deployments/default/held-closes")).held_closes.map(({ state }) => state);
  expect(await held()).toEqual(["pending"]);
  await page.goto("/console/default/scans?tab=held");
  const row = page.getByRole("list", { name: "Held closes" }).getByRole("listitem").first();
  await expect(row).toContainText(projects.gateway);
  await expect(row).toContainText("106 of 111");
  await row.getByRole("button", { name: "Close them" }).click();
  await expect.poll(held).toEqual(["confirmed"]);
  await expect(page.getByText("Nothing waits for a decision")).toBeVisible();
});
