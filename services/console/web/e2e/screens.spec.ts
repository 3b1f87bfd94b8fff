import { expectAccessible, twoLooks } from "./checks";
import { projects } from "./fill";
import { expect, test } from "./test";

/** The screens besides triage, set-up and sign-in, which have tests of their own, and a text that says they are ready. */
const screens = [
  { name: "scans", path: "scans", ready: "Up to date" },
  { name: "held", path: "scans?tab=held", ready: "106 of 111" },
  { name: "scan-list", path: "scans?tab=list", ready: projects.main },
  { name: "scan", path: "scans/1", ready: projects.main },
  { name: "pull-request", path: `pull-requests?project=${encodeURIComponent(projects.main)}&number=7`, ready: "added_0.go" },
  { name: "finding", path: "findings/1", ready: "History" },
  { name: "projects", path: "projects", ready: projects.shop },
  { name: "project", path: "projects?id=1", ready: "Primary branch" },
  { name: "overview", path: "overview", ready: "Open findings" },
  { name: "api", path: "api", ready: "API" },
];

for (const { name, path, ready } of screens) {
  test(`${name} is accessible in every look, and says what went wrong`, async ({ page }) => {
    test.slow();
    await page.goto(`/console/default/${path}`);
    await expect(page.getByRole("main")).toContainText(ready);
    await expect(page.getByRole("main").getByText("Loading", { exact: true })).toHaveCount(0);
    await expectAccessible(page, name);
    // Who the person is stays known: without it there is no screen.
    await page.route(/\/(api\/|openapi)/, (route) => {
      const known = /deployments$|users\/current|authorized_actions/.test(new URL(route.request().url()).pathname);
      if (known) return route.fallback();
      return route.fulfill({ status: 500, json: { code: "INTERNAL", message: "The store is on fire.", requestId: "R1" } });
    });
    await page.reload();
    await expect(page.getByRole("alert").first()).toContainText("is on fire");
    await expectAccessible(page, `${name}-error`, twoLooks);
  });
}

test("a project leads to its findings in triage", async ({ page }) => {
  await page.goto("/console/default/projects?id=1");
  const high = page.getByRole("main").getByRole("link", { name: /\d+\s+High/ });
  const number = /\d+/.exec(await high.innerText())?.[0] ?? "";
  await high.click();
  await expect(page).toHaveURL(/severity=high/);
  await expect(page.getByRole("listbox", { name: "Findings" }).locator("[aria-current=true]")).toHaveAttribute("aria-setsize", number);
  await page.goto("/console/default/scans/1");
  await page.getByRole("link", { name: "Triage the open findings of main" }).click();
  await expect(page).toHaveURL(/triage\?.*ref=/);
});

test("addresses by hand: quoted ids, unknown things, and a filter by project", async ({ page }) => {
  const main = page.getByRole("main");
  await page.goto('/console/default/projects?id="1"');
  await expect(main).toContainText("Primary branch");
  for (const [path, back] of [["projects?id=9999", "All projects"], ["projects?id=x", "All projects"], ["scans/9999", "All scans"], ["scans/x", "All scans"]] as const) {
    await page.goto(`/console/default/${path}`);
    await expect(main).toContainText("Not found");
    await expect(main.getByRole("link", { name: back })).toBeVisible();
  }
  await page.goto("/console/default/scans?tab=list");
  await expect(main.getByRole("table")).toContainText(projects.frontend);
  await main.getByLabel("Project").fill(projects.shop);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/project=acme/);
  await expect(main.getByRole("table")).not.toContainText(projects.frontend);
  await page.reload();
  await expect(main.getByRole("table")).toContainText(projects.shop);
  await expect(main.getByRole("table")).not.toContainText(projects.frontend);
});

test("rows and tabs fit a phone", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  for (const path of ["scans?tab=list", "scans?tab=pulls", "projects"]) {
    await page.goto(`/console/default/${path}`);
    const table = page.getByRole("main").getByRole("region").first();
    await expect(table).toBeVisible();
    expect.soft(await table.evaluate((one) => one.scrollWidth - one.clientWidth), path).toBeLessThanOrEqual(0);
  }
  await page.goto("/console/default/setup");
  const tabs = page.getByRole("tablist");
  await expect(tabs).toBeVisible();
  expect(await tabs.evaluate((one) => one.scrollWidth - one.clientWidth)).toBeLessThanOrEqual(0);
});

test.describe("a person of one team", () => {
  test.use({ who: "member" });

  test("does not see what other teams have", async ({ page }) => {
    for (const path of ["projects", "scans", "scans?tab=list", "scans?tab=held", "overview"]) {
      await page.goto(`/console/default/${path}`);
      await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
      await expect(page.getByRole("main").getByText("Loading", { exact: true })).toHaveCount(0);
      for (const hidden of [projects.main, projects.frontend, projects.gateway]) await expect(page.getByRole("main")).not.toContainText(hidden);
    }
    for (const path of ["findings/1", "scans/1", `pull-requests?project=${encodeURIComponent(projects.main)}&number=7`]) {
      await page.goto(`/console/default/${path}`);
      await expect(page.getByRole("main")).toContainText(/Not found|does not exist|you may not see its project/);
    }
  });
});

test.describe("a person who may only read", () => {
  test.use({ who: "reader" });

  test("finds no button that would be refused", async ({ page }) => {
    const forbidden = ["Close them", "Keep them open", "Save", "Delete the project", "Make a badge", "Make a token", "Choose a file", "Split", "Merge"];
    for (const path of ["scans?tab=held", "projects?id=1", "findings/1", "setup", "scans/1"]) {
      await page.goto(`/console/default/${path}`);
      await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
      await expect(page.getByRole("main").getByText("Loading", { exact: true })).toHaveCount(0);
      if (path === "setup") {
        await expect(page.getByText("This needs the role Member or Administrator.")).toBeVisible();
        await expect(page.getByRole("textbox")).toHaveCount(0);
      }
      for (const name of forbidden) await expect.soft(page.getByRole("button", { name, exact: true }), `${name} on ${path}`).toHaveCount(0);
    }
  });
});
