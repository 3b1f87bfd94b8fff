import type { Page } from "@playwright/test";
import { expectAccessible, slowness, twoLooks } from "./checks";
import { projects } from "./fill";
import { expect, test } from "./test";
import type { Server } from "./server";

/** A keyboard that counts. */
class Keyboard {
  pressed = 0;
  constructor(private readonly page: Page) {}

  async press(...keys: string[]): Promise<void> {
    for (const key of keys) {
      this.pressed++;
      await this.page.keyboard.press(key);
    }
  }
}

const openRow = (page: Page) => page.getByRole("listbox", { name: "Findings" }).locator("[aria-current=true]");

/** The screen with its first finding open. */
async function openTriage(page: Page, search = ""): Promise<void> {
  await page.goto(`/console/default/triage${search}`);
  await expect(openRow(page)).toHaveAttribute("aria-posinset", "1");
  await expect(page.getByRole("region", { name: "Preview" }).getByRole("heading", { level: 2 })).toBeVisible();
}

interface Issue { id: string; triageState: string; triageReason: string; note: string }

const readIssues = async (server: Server, filter: object, limit = 100): Promise<Issue[]> => {
  const body = { filter, limit, sortBy: "SORT_BY_RELEVANT_SINCE" };
  const answer = await server.call<{ issues: Array<{ issue: Issue }> }>("POST", "/api/agent/deployments/1/issues", body);
  return answer.issues.map(({ issue }) => issue);
};

/** The decision about each finding, as the API says it. */
async function decisionsOf(server: Server, ids: string[]): Promise<string[]> {
  const issues = new Map((await readIssues(server, { ids }, ids.length)).map((issue) => [issue.id, issue]));
  return ids.map((id) => {
    const issue = issues.get(id);
    return `${issue?.triageState} ${issue?.triageReason ?? ""}`.replaceAll(/FINDING_TRIAGE_(STATE|REASON)_/g, "").trim();
  });
}

const meaning: Record<string, string> = { f: "IGNORED FALSE_POSITIVE", a: "IGNORED ACCEPTABLE_RISK", x: "FIXING", r: "REVIEWING" };
const openFindings = { repositoryNames: [projects.main], refs: ["refs/heads/main"], aggregateIssueStates: ["AGGREGATE_ISSUE_STATE_OPEN"] };
const openSearch = `?project=${projects.main}&ref=${encodeURIComponent("refs/heads/main")}`;

test("20 findings in at most 45 keys and without a page load", async ({ page, server }) => {
  const ids = (await readIssues(server, openFindings, 20)).map(({ id }) => id);
  expect(ids).toHaveLength(20);
  await openTriage(page, openSearch);
  await page.evaluate(() => ((window as unknown as { sameDocument: boolean }).sameDocument = true));
  const keyboard = new Keyboard(page);
  const keys = Array.from(ids, (_id, at) => "faxr"[at % 4]!);
  for (const [at, key] of keys.entries()) {
    // A person reads the finding before they decide: its preview must be there.
    await expect(openRow(page)).toHaveAttribute("aria-posinset", `${at + 1}`);
    await expect(page.getByRole("region", { name: "Preview" }).getByRole("heading", { level: 2 })).toBeVisible();
    await keyboard.press(key);
  }
  await expect.poll(() => decisionsOf(server, ids)).toEqual(keys.map((key) => meaning[key]));
  expect(keyboard.pressed).toBeLessThanOrEqual(45);
  expect(await page.evaluate(() => (window as unknown as { sameDocument?: boolean }).sameDocument), "no page load").toBe(true);

  // The last decision is undone by one key, an earlier one from the list of changes.
  await page.keyboard.press("z");
  await expect.poll(() => decisionsOf(server, [ids[19]!])).toEqual(["UNTRIAGED"]);
  expect(await decisionsOf(server, [ids[18]!])).toEqual(["FIXING"]);
  await page.keyboard.press("c");
  const changes = page.getByRole("dialog", { name: "Changes" });
  // Newest first: the undo, the undone decision, and the decisions before it. The seventh is about ids[14].
  const earlier = changes.getByRole("listitem").nth(6);
  await expect(earlier).toContainText(/To fix|Reviewing|False positive|Acceptable risk/);
  await earlier.getByRole("button", { name: "Undo" }).click();
  await expect.poll(() => decisionsOf(server, [ids[14]!])).toEqual(["UNTRIAGED"]);
  expect(await decisionsOf(server, [ids[13]!, ids[15]!])).toEqual([meaning[keys[13]!], meaning[keys[15]!]]);

  // After a reload, and for other people, the rows still name their findings: the last one is about ids[14].
  await page.reload();
  await expect(openRow(page)).toBeVisible();
  await page.keyboard.press("c");
  await expect(changes.getByRole("listitem").first().getByRole("link")).toHaveAttribute("href", new RegExp(`/findings/${ids[14]}$`));
  await expect(changes.getByRole("listitem").first()).toContainText(projects.main);
});

test("a note, a selection, and everything that matches", async ({ page, server }) => {
  const ids = (await readIssues(server, openFindings, 5)).map(({ id }) => id);
  await openTriage(page, openSearch);
  await page.keyboard.press("n");
  const note = page.getByRole("dialog", { name: "Note" });
  await note.getByLabel("Note").fill("Checked by hand.\n<b>Not</b> reachable.");
  await page.keyboard.press("Control+Enter");
  await expect.poll(async () => (await readIssues(server, { ids: [ids[0]] }))[0]?.note).toBe("Checked by hand.\n<b>Not</b> reachable.");

  await page.keyboard.press(" ");
  await page.keyboard.press("J");
  await page.keyboard.press("J");
  await expect(page.getByText("3 selected")).toBeVisible();
  await page.keyboard.press("f");
  await expect.poll(() => decisionsOf(server, ids.slice(0, 4))).toEqual([...Array<string>(3).fill(meaning.f!), "UNTRIAGED"]);
  await page.keyboard.press("z");
  await expect.poll(() => decisionsOf(server, ids.slice(0, 3))).toEqual(["UNTRIAGED", "UNTRIAGED", "UNTRIAGED"]);

  await page.keyboard.press("A");
  const bulk = page.getByRole("dialog", { name: "Decide about everything that matches" });
  // The 309 findings of the branch, and the same ones in the pull request.
  await expect(bulk).toContainText("Open 309");
  await bulk.getByRole("button", { name: /^Change 618 findings/ }).click();
  await expect(bulk).toBeHidden();
  await expect.poll(async () => (await readIssues(server, openFindings)).length).toBe(0);
  const changed = page.getByRole("status").locator("div").filter({ hasText: /^Changed: 618 findings/ });
  await expect(changed.getByRole("button", { name: "Undo" })).toBeVisible();
  await expect(page.getByRole("listbox", { name: "Findings" }).getByRole("option")).toHaveCount(0);
  await page.keyboard.press("z");
  await expect.poll(async () => (await readIssues(server, openFindings, 500)).length).toBe(309);
  await expect(openRow(page)).toHaveAttribute("aria-setsize", "309");
});

test("a typed note is not lost by Escape, a click beside the dialog or its cross", async ({ page, server }) => {
  const ids = (await readIssues(server, openFindings, 1)).map(({ id }) => id);
  await openTriage(page, openSearch);
  await page.keyboard.press("n");
  const dialog = page.getByRole("dialog", { name: "Note" });
  await page.keyboard.press("Escape");
  await expect(dialog, "nothing was typed").toBeHidden();
  const close = [
    () => page.keyboard.press("Escape"),
    () => page.mouse.click(5, 5),
    () => dialog.getByRole("button", { name: "Close" }).click(),
  ];
  for (const leave of close) {
    await page.keyboard.press("n");
    await dialog.getByLabel("Note").fill("Half a thought");
    await leave();
    const asked = dialog.getByRole("alertdialog", { name: "What you typed is not saved." });
    await expect(asked.getByRole("button", { name: "Go on writing" })).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(asked).toBeHidden();
    await expect(dialog.getByLabel("Note")).toBeFocused();
    await expect(dialog.getByLabel("Note")).toHaveValue("Half a thought");
    await leave();
    await expectAccessible(page, "note-unsaved", twoLooks);
    await asked.getByRole("button", { name: "Discard it" }).click();
    await expect(dialog).toBeHidden();
  }
  await page.keyboard.press("n");
  await expect(dialog.getByLabel("Note")).toHaveValue("");
  await dialog.getByLabel("Note").fill("A whole thought");
  await page.keyboard.press("Control+Enter");
  await expect.poll(async () => (await readIssues(server, { ids }))[0]?.note).toBe("A whole thought");
  await expect(dialog).toBeHidden();
});

test("severities are listed from the highest, with their numbers", async ({ page }) => {
  await openTriage(page);
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Severity" }).click();
  const values = page.getByRole("dialog").getByRole("checkbox");
  await expect(values).toHaveCount(4);
  expect(await values.evaluateAll((all) => all.map((one) => one.closest("label")?.textContent))).toEqual(["Critical", "High", "Medium", "Low"]);
});

test("filters, groups and the order live in the address", async ({ page }) => {
  await openTriage(page);
  const total = async () => Number(await openRow(page).getAttribute("aria-setsize"));
  const all = await total();
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  const panel = page.getByRole("dialog", { name: /Filter/ });
  await panel.getByRole("button", { name: "Severity" }).click();
  await panel.or(page.getByRole("dialog", { name: "Values of Severity" })).getByRole("checkbox", { name: /High/ }).click();
  await expect(page).toHaveURL(/severity=high/);
  await page.keyboard.press("Escape");
  await expect.poll(total).toBeLessThan(all);
  const fewer = await total();
  await page.reload();
  await expect.poll(total).toBe(fewer);
  await page.goBack();
  await expect.poll(total).toBe(all);
});

const preview = (page: Page) => page.getByRole("region", { name: "Preview" });

test("the address names the open finding: a copied link, back and forward open it again", async ({ page, another, server }) => {
  const ids = (await readIssues(server, openFindings, 310)).map(({ id }) => id);
  await openTriage(page, openSearch);
  await expect(page, "the first one is open").toHaveURL(new RegExp(`finding=${ids[0]}(&|$)`));
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await expect(page).toHaveURL(new RegExp(`finding=${ids[2]}(&|$)`));
  const link = page.url();

  // Clicks are steps of the history, keys are not.
  const rows = page.getByRole("option");
  await rows.nth(4).click();
  await expect(page).toHaveURL(new RegExp(`finding=${ids[4]}(&|$)`));
  await rows.nth(6).click();
  await expect(page).toHaveURL(new RegExp(`finding=${ids[6]}(&|$)`));
  await page.goBack();
  await expect(openRow(page)).toHaveAttribute("aria-posinset", "5");
  await page.goBack();
  await expect(openRow(page)).toHaveAttribute("aria-posinset", "3");
  await page.goForward();
  await expect(openRow(page)).toHaveAttribute("aria-posinset", "5");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(new RegExp(`/findings/${ids[4]}$`));
  await page.goBack();
  await expect(openRow(page)).toHaveAttribute("aria-posinset", "5");
  await page.keyboard.press("k");
  await page.reload();
  await expect(openRow(page)).toHaveAttribute("aria-posinset", /^[45]$/);

  // Somebody else opens the copied link.
  const other = await (await another("admin")).newPage();
  await other.goto(link);
  await expect(openRow(other)).toHaveAttribute("aria-posinset", "3");
  await expect(preview(other).getByRole("link", { name: "Open the finding’s page" })).toHaveAttribute("href", new RegExp(`/findings/${ids[2]}$`));

  // One that no longer matches the filter opens too, and so does one that is far down in the list. Keys are about it.
  await other.keyboard.press("f");
  await expect.poll(() => decisionsOf(server, [ids[2]!])).toEqual([meaning.f]);
  for (const [id, state] of [[ids[2]!, "False positive"], [ids[308]!, "Open"]] as const) {
    await page.goto(link.replace(`finding=${ids[2]}`, `finding=${id}`));
    await expect(preview(page).getByRole("link", { name: "Open the finding’s page" })).toHaveAttribute("href", new RegExp(`/findings/${id}$`));
    await expect(preview(page)).toContainText(state);
    await expect(page.getByRole("option").first()).toBeVisible();
    await expect(openRow(page)).toHaveCount(0);
    await expect(page).toHaveURL(new RegExp(`finding=${id}(&|$)`));
  }
  await page.keyboard.press("a");
  await expect.poll(() => decisionsOf(server, [ids[308]!, ids[0]!])).toEqual([meaning.a, "UNTRIAGED"]);
  await expect(openRow(page)).toHaveAttribute("aria-posinset", "1");
  await page.keyboard.press("z");
  await expect.poll(() => decisionsOf(server, [ids[308]!])).toEqual(["UNTRIAGED"]);
  await expect(preview(page).getByRole("link", { name: "Open the finding’s page" })).toHaveAttribute("href", new RegExp(`/findings/${ids[308]}$`));

  // An id of nothing says so, and the list opens its first finding. A filter that has nothing does not hide the finding.
  await page.goto(`/console/default/triage${openSearch}&finding=999999`);
  await expect(page.getByRole("status").filter({ hasText: "Finding 999999 does not exist" })).toBeVisible();
  await expect(openRow(page)).toHaveAttribute("aria-posinset", "1");
  await page.goto(`/console/default/triage?path=no/such/file&finding=${ids[5]}`);
  await expect(page.getByText("No finding matches")).toBeVisible();
  await expect(preview(page).getByRole("heading", { level: 2 })).toBeVisible();
});

test("on a phone, the address opens the finding, and back leads to the list", async ({ page, server }) => {
  const ids = (await readIssues(server, openFindings, 3)).map(({ id }) => id);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`/console/default/triage${openSearch}`);
  const rows = page.getByRole("option");
  await expect(rows.first()).toBeVisible();
  await expect(preview(page)).toBeHidden();
  await rows.nth(1).click();
  await expect(preview(page)).toBeVisible();
  await expect(page).toHaveURL(new RegExp(`finding=${ids[1]}(&|$)`));
  await page.reload();
  await expect(preview(page).getByRole("link", { name: "Open the finding’s page" })).toHaveAttribute("href", new RegExp(`/findings/${ids[1]}$`));
  await expect(rows.first()).toBeHidden();
  await page.goBack();
  await expect(rows.first()).toBeVisible();
  await expect(preview(page)).toBeHidden();
  await page.goForward();
  await preview(page).getByRole("button", { name: "Back to the list" }).click();
  await expect(rows.first()).toBeVisible();
  await expect(page).not.toHaveURL(/finding=/);
});

test("a list longer than browsers can show scrolls to its end", async ({ page }) => {
  const total = 600_000;
  await page.route("**/issue_filters", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...((await response.json()) as object), total: String(total) } });
  });
  // Each page has the first findings again, under ids of their own.
  await page.route("**/issues", async (route) => {
    const { cursor, offset, ...body } = route.request().postDataJSON() as { cursor?: string; offset?: number; limit: number; filter: { ids?: string[] } };
    if (body.filter.ids) return route.continue();
    const start = cursor ? Number(cursor) : (offset ?? 0);
    const response = await route.fetch({ postData: body });
    const { issues } = (await response.json()) as { issues: Array<{ issue: object }> };
    const next = start + body.limit;
    const own = issues.map(({ issue }, n) => ({ issue: { ...issue, id: String(1_000_000 + start + n) } }));
    return route.fulfill({ response, json: { issues: own, cursor: next < total ? String(next) : "" } });
  });
  await page.goto("/console/default/triage");
  const list = page.getByRole("listbox", { name: "Findings" });
  await expect(openRow(page)).toHaveAttribute("aria-setsize", String(total));
  const scrollTo = (end: "top" | "bottom") => list.evaluate((element, where) => (element.scrollTop = where === "top" ? 0 : element.scrollHeight), end);
  for (const [end, row] of [["bottom", total - 1], ["top", 0]] as const) {
    await expect(async () => {
      await scrollTo(end);
      await expect(page.locator(`#finding-${row}`)).toBeVisible({ timeout: 1_000 });
    }).toPass();
  }
});

test("what others do appears within 2 seconds, and is shown before it is overwritten", async ({ page, another, server }) => {
  await openTriage(page, openSearch);
  const context = await another("admin");
  const other = await context.newPage();
  await openTriage(other, openSearch);

  const first = page.getByRole("option").first();
  await other.keyboard.press("f");
  const decided = Date.now();
  await expect(first).toContainText("False positive", { timeout: 60_000 });
  expect.soft(Date.now() - decided, "milliseconds until the change of the other appears").toBeLessThan(2_000 * slowness());

  // Both have the next finding open. The other one decides while this browser cannot hear of it: it opens no feed.
  const id = (await readIssues(server, openFindings, 1))[0]!.id;
  await page.route("**/findings/changes*", (route) => route.fulfill({ status: 503 }));
  await openTriage(page, openSearch);
  await expect(openRow(other)).toHaveAttribute("aria-posinset", "2");
  await other.keyboard.press("a");
  await expect.poll(() => decisionsOf(server, [id])).toEqual([meaning.a]);
  await page.keyboard.press("x");
  const overtaken = page.getByRole("dialog", { name: "Somebody else has decided" });
  await expect(overtaken).toContainText("Acceptable risk");
  await expect(overtaken).toContainText("Your decision: To fix. Nothing was overwritten.");
  expect(await decisionsOf(server, [id])).toEqual([meaning.a]);
  await overtaken.getByRole("button", { name: "Decide anyway" }).click();
  await expect.poll(() => decisionsOf(server, [id])).toEqual([meaning.x]);
});

test("a lost connection offers another try, and recovers by itself", async ({ page, faults }) => {
  await page.goto("/console/default/projects");
  await expect(page.getByRole("main")).toContainText(projects.shop);
  await page.route("**/issues", (route) => route.abort());
  await page.goto("/console/default/triage");
  const lost = page.getByRole("alert").filter({ hasText: "No connection to the server" });
  await expect(lost.getByRole("button", { name: "Try again" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Reload", exact: true })).toHaveCount(0);
  await page.unroute("**/issues");
  await expect(openRow(page)).toBeVisible({ timeout: 30_000 });
  faults.errors = faults.errors.filter((one) => !/ERR_FAILED|ConnectionError/.test(one));
});

test.describe("states", () => {
  test("are accessible in every look", async ({ page }) => {
    await openTriage(page);
    await expect(page.getByRole("region", { name: "Preview" })).toContainText("History");
    await expectAccessible(page, "triage");
    await page.keyboard.press("A");
    await expect(page.getByRole("dialog")).toContainText("would change");
    await expectAccessible(page, "triage-bulk");
  });

  test("say what to do next", async ({ page }) => {
    await page.goto("/console/default/triage?path=no/such/file");
    await expect(page.getByText("No finding matches")).toBeVisible();
    await expectAccessible(page, "triage-empty");
    await page.route("**/issues", (route) => route.fulfill({ status: 500, json: { code: "INTERNAL", message: "The database is on fire.", requestId: "R1" } }));
    await page.goto("/console/default/triage");
    await expect(page.getByRole("alert")).toContainText("The database is on fire.");
    await expect(page.getByRole("alert")).toContainText("R1");
    await expectAccessible(page, "triage-error");
    await page.unroute("**/issues");
    await page.getByRole("button", { name: "Try again" }).click();
    await expect(openRow(page)).toHaveAttribute("aria-posinset", "1");
  });
});

test.describe("a person who may only read", () => {
  test.use({ who: "reader" });

  test("sees findings and no way to decide", async ({ page, server }) => {
    await openTriage(page, openSearch);
    await expect(page.getByText("Your role may read findings, but not decide about them.")).toBeVisible();
    await expect(page.getByRole("group", { name: "Decide" })).toHaveCount(0);
    await expect(page.getByRole("button", { name: "All that match" })).toHaveCount(0);
    const before = (await readIssues(server, openFindings, 500)).length;
    for (const key of ["f", "a", "x", "r", "z", "A", "n"]) await page.keyboard.press(key);
    await expect(page.getByRole("dialog")).toHaveCount(0);
    expect(await readIssues(server, openFindings, 500)).toHaveLength(before);
  });
});

test.describe("a member of one team", () => {
  test.use({ who: "member" });

  test("sees and decides about its project only", async ({ page }) => {
    await openTriage(page);
    await page.keyboard.press("f");
    await expect(page.getByRole("status").filter({ hasText: "False positive." })).toBeVisible();
    const shown = await page.getByRole("option").allTextContents();
    expect(shown.length).toBeGreaterThan(3);
    for (const text of shown) expect(text).toContain(projects.shop);
    await page.goto(`/console/default/triage?project=${projects.main}&state=any`);
    await expect(page.getByText("No finding matches")).toBeVisible();
  });
});

test("a held key decides once, and keys do not reach through an open filter", async ({ page, server }) => {
  const ids = (await readIssues(server, openFindings, 3)).map(({ id }) => id);
  await openTriage(page, openSearch);
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Severity" }).or(page.getByRole("dialog").getByText("Severity", { exact: true })).first().click();
  await page.getByRole("checkbox").first().focus();
  await page.keyboard.press("f");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  for (let press = 0; press < 4; press++) await page.keyboard.down("a"); // the last three are repeats
  await page.keyboard.up("a");
  await expect(openRow(page)).toHaveAttribute("aria-posinset", "2");
  await expect.poll(() => decisionsOf(server, ids)).toEqual([meaning.a, "UNTRIAGED", "UNTRIAGED"]);
});

test("on a phone, the buttons say that they are about the selection", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`/console/default/triage${openSearch}`);
  const list = page.getByRole("listbox", { name: "Findings" });
  await list.getByRole("option").nth(0).getByTitle(/^Select/).click();
  await list.getByRole("option").nth(1).getByTitle(/^Select/).click();
  await list.getByRole("option").nth(2).click();
  await expect(page.getByText("A decision is about the 2 selected findings.")).toBeVisible();
  await expectAccessible(page, "triage-selected-phone");
});
