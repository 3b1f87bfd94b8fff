import { writeFileSync } from "node:fs";
import type { TestInfo } from "@playwright/test";
import { expectAccessible } from "./checks";
import { projects } from "./fill";
import { expect, test } from "./test";
import type { Server } from "./server";

/** Makes every new finding block. */
async function blockNew(server: Server, info: TestInfo, name: string): Promise<void> {
  const file = info.outputPath("policies.json");
  const conditions = [{ type: "finding_state", values: ["new"] }];
  const policy = { slug: "no-new", name, active: true, filters: { mode: "all", conditions }, actions: [{ type: "block" }] };
  writeFileSync(file, JSON.stringify({ policies: { remediation: { deployment_slug: "default", policies: [policy] } } }));
  await server.palisade("policy", "apply", file);
}

/** A report with a result of a rule in each file. */
const reportOf = (rule: string, ...files: string[]) => JSON.stringify({
  version: "2.1.0",
  runs: [{
    tool: { driver: { name: "lint", version: "1.4", rules: [{ id: rule }] } },
    results: files.map((uri) => ({
      ruleId: rule,
      level: "error",
      message: { text: `Bad ${uri}` },
      locations: [{ physicalLocation: { artifactLocation: { uri }, region: { startLine: 3, snippet: { text: `bad ${uri}` } } } }],
    })),
  }],
});

test("the list says which pull requests are blocked", async ({ page, server }, info) => {
  await blockNew(server, info, "No new findings");
  const upload = async (name: string, ref: string, ...files: string[]) => {
    const file = info.outputPath(`${name}.sarif`);
    writeFileSync(file, reportOf("no-bad", ...files));
    await server.palisade("upload", file, "--project", projects.shop, "--ref", ref);
  };
  await upload("main", "refs/heads/main", "a.js");
  await upload("blocked", "refs/pull/20/merge", "a.js", "b.js");
  await upload("passed", "refs/pull/21/merge", "a.js");
  await page.goto("/console/default/scans?tab=pulls");
  const row = (number: number) => page.getByRole("row").filter({ hasText: `#${number}` });
  await expect(row(20).getByText("Blocked", { exact: true })).toBeVisible();
  await expect(row(21).getByText("Passed", { exact: true })).toBeVisible();
  await expectAccessible(page, "pull-requests");
  await row(20).getByRole("link", { name: "Pull request 20" }).click();
  await expect(page.getByRole("heading", { name: "1 finding blocks this pull request" })).toBeVisible();
});

test("the address of a pull request names the open finding", async ({ page }) => {
  await page.goto(`/console/default/pull-requests?project=${encodeURIComponent(projects.main)}&number=7`);
  const open = page.getByRole("listbox").locator("[aria-current=true]");
  await expect(open).toContainText("added_0.go");
  await page.keyboard.press("j");
  await expect(open).toContainText("added_1.go");
  await expect(page).toHaveURL(/finding=\d+/);
  await page.getByRole("option").nth(2).click();
  await expect(open).toContainText("added_2.go");
  await page.reload();
  await expect(open).toContainText("added_2.go");
  await page.goBack();
  await expect(open).toContainText("added_1.go");
});

test("long names fit every width", async ({ page, server }, info) => {
  test.slow();
  const long = (start: string, length: number) => start + "very-long-name-".repeat(20).slice(0, length - start.length);
  const project = long("acme/", 200);
  const branch = long("feature/", 200);
  const file = info.outputPath("long.sarif");
  const put = (ref: string, ...files: string[]) => {
    writeFileSync(file, reportOf(long("rules.", 200), ...files));
    return server.palisade("upload", file, "--project", project, "--ref", ref);
  };
  await blockNew(server, info, long("No-", 100));
  await put("refs/heads/main", "a.js");
  const path = long("src/", 200);
  await put("refs/pull/9/merge", "a.js", path);
  await put(`refs/heads/${branch}`, "a.js", path);
  const of = `project=${encodeURIComponent(project)}`;
  const screens = {
    "pull-request": [`pull-requests?${of}&number=9`, "blocks this pull request"],
    branch: [`pull-requests?${of}&ref=${encodeURIComponent(`refs/heads/${branch}`)}`, "blocks this pull request"],
    pulls: ["scans?tab=pulls", "Blocked"],
    scans: ["scans?tab=list", "very-long-name"],
    freshness: ["scans", "very-long-name"],
    triage: [`triage?${of}&everywhere=true&ref=${encodeURIComponent(`refs/heads/${branch}`)}`, "very-long-name"],
    groups: ["triage?group=rule", "very-long-name"],
    projects: ["projects", "very-long-name"],
    overview: ["overview", "Open findings"],
  } as const;
  for (const [name, [address, ready]] of Object.entries(screens)) {
    await page.setViewportSize({ width: 320, height: 844 });
    await page.goto(`/console/default/${address}`);
    await expect(page.getByRole("main")).toContainText(ready);
    await expect(page.getByRole("main").getByText("Loading", { exact: true })).toHaveCount(0);
    for (const width of [320, 390, 768, 1280]) {
      await page.setViewportSize({ width, height: 844 });
      await page.screenshot({ path: `${import.meta.dirname}/.output/screens/long-${name}-${width}.png` });
      // Nothing is wider than the screen, and nothing is cut at its edge.
      const wide = await page.evaluate(() => [...document.querySelectorAll<HTMLElement>("main, main *")].flatMap((one) => {
        const { left, right, width: own } = one.getBoundingClientRect();
        if (own === 0 || (right <= window.innerWidth + 0.5 && left >= -0.5) || one.closest("thead, .sr-only, svg, [role=region].overflow-x-auto, pre")) return [];
        return [`${one.tagName} ${one.className} ${Math.round(left)}–${Math.round(right)}`];
      }));
      expect.soft(wide.slice(0, 3), `${name} at ${width}`).toEqual([]);
      expect.soft(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth), `${name} at ${width}`).toBeLessThanOrEqual(0);
    }
  }
});
