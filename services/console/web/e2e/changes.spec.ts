import { changedReport, projects, report } from "./fill";
import { expect, test } from "./test";

test("a view is saved, opened after a reload, changed and deleted", async ({ page }) => {
  await page.goto("/console/default/triage?severity=high");
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("menuitem", { name: "Save as a view" }).click();
  const dialog = page.getByRole("dialog", { name: "Save as a view" });
  await dialog.getByLabel("Name").fill("High ones");
  await dialog.getByLabel("Show it first when the screen is opened").check();
  await dialog.getByRole("button", { name: "Save as a view" }).click();
  await expect(page.getByText("The view “High ones” is saved.")).toBeVisible();
  await expect(page).toHaveURL(/view=\d+/);

  // It is the default: the screen without conditions opens it.
  await page.goto("/console/default/triage");
  await expect(page).toHaveURL(/severity=high/);
  const views = page.getByRole("button", { name: "Views" });
  await expect(views).toContainText("High ones");
  await views.click();
  await page.getByRole("menuitemradio", { name: "Open findings" }).or(page.getByRole("menuitemcheckbox", { name: "Open findings" })).click();
  await expect(page).not.toHaveURL(/severity=high/);

  await views.click();
  await page.getByRole("menuitemradio", { name: /High ones/ }).or(page.getByRole("menuitemcheckbox", { name: /High ones/ })).click();
  await expect(page).toHaveURL(/severity=high/);
  await views.click();
  await page.getByRole("menuitem", { name: "Delete “High ones”" }).click();
  await expect(page.getByText("The view “High ones” is deleted.")).toBeVisible();
  await page.goto("/console/default/triage");
  await expect(page.getByRole("listbox", { name: "Findings" })).toBeVisible();
  await expect(page).not.toHaveURL(/severity=high/);
});

test("a report by e-mail is set up, changed and deleted, and says what is missing", async ({ page, server }) => {
  const rules = async () => {
    const { notification_rules: listed } = await server.call<{ notification_rules: Array<{ name: string; config: { to: string }; send_report?: { cadence: string } }> }>("POST", "/api/agent/deployments/1/actions/list", {});
    return listed.map(({ name, config, send_report: report }) => `${name} ${config.to} ${report?.cadence}`);
  };
  await page.goto("/console/default/overview");
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Send by e-mail" }).click();
  const dialog = page.getByRole("dialog", { name: "Reports by e-mail" });
  await expect(dialog.getByText("No report is sent yet.")).toBeVisible();
  await dialog.getByRole("button", { name: "Add a report" }).click();
  await dialog.getByLabel("To").fill("nobody");
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(dialog.getByRole("alert")).toContainText("nobody");
  await dialog.getByLabel("To").fill("appsec@example.com");
  await dialog.getByLabel("How often").selectOption({ label: "Every week" });
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(dialog.getByText("appsec@example.com")).toBeVisible();
  expect(await rules()).toEqual(["Security report appsec@example.com REPORT_CADENCE_WEEKLY"]);

  // This server has no mail server. The list says so, and so does sending.
  await expect(dialog.getByText(/smtp/i)).toBeVisible();
  await dialog.getByRole("button", { name: "Send one now" }).click();
  await expect(page.getByRole("status").filter({ hasText: /smtp/i }).first()).toBeVisible();

  await dialog.getByRole("button", { name: "Change" }).click();
  await dialog.getByLabel("How often").selectOption({ label: "Every day" });
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(dialog.getByText("Every day")).toBeVisible();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await expect(dialog.getByText("No report is sent yet.")).toBeVisible();
  expect(await rules()).toEqual([]);
});

interface Found { issues: Array<{ issue: { id: string; filePath: string } }> }

test("a finding that moved beyond recognition is merged with what it was, and the merge is undone", async ({ page, server }) => {
  // The code of one finding moves to another file and is rewritten there.
  const moved = "apis/rewritten.go";
  let before = "";
  await changedReport(report("gosec.sarif"), ({ runs: [run] }) => {
    const place = run!.results[0]!.locations![0]!.physicalLocation;
    before = place.artifactLocation.uri;
    place.artifactLocation.uri = moved;
    place.region = { startLine: 900, snippet: { text: "entirely := other(code)" } };
  }, (file) => server.palisade("upload", file, "--project", projects.main, "--ref", "main", "--commit", "7".repeat(40)));
  const find = async (state: string) => {
    const filter = { repositoryNames: [projects.main], refs: ["refs/heads/main"], aggregateIssueStates: [`AGGREGATE_ISSUE_STATE_${state}`] };
    return (await server.call<Found>("POST", "/api/agent/deployments/1/issues", { filter, limit: 400 })).issues.map(({ issue }) => issue);
  };
  const old = (await find("FIXED")).find(({ filePath }) => filePath === before)!;
  const fresh = (await find("OPEN")).find(({ filePath }) => filePath === moved)!;

  await page.goto(`/console/default/findings/${fresh.id}`);
  await page.getByRole("button", { name: "Merge" }).click();
  const dialog = page.getByRole("dialog", { name: "Merge: this is the same problem" });
  await dialog.getByLabel("Id of the finding that stays").fill("999999999");
  await expect(dialog.getByRole("alert")).toContainText("999999999");
  await dialog.getByLabel("Id of the finding that stays").fill(old.id);
  await expect(dialog.getByRole("status")).toContainText(`Finding ${old.id}`);
  await page.screenshot({ path: `${import.meta.dirname}/.output/screens/merge.png` });
  await dialog.getByRole("button", { name: "Merge" }).click();
  await expect(page.getByText("The findings are merged.")).toBeVisible();
  const ids = async () => (await find("OPEN")).map(({ id }) => id).filter((id) => id === old.id || id === fresh.id);
  await expect.poll(ids).toEqual([old.id]);

  await page.goto(`/console/default/findings/${old.id}`);
  await page.getByRole("button", { name: "Splits and merges" }).click();
  await page.getByRole("dialog", { name: "Splits and merges" }).getByRole("button", { name: "Undo" }).click();
  await expect.poll(ids).toEqual([fresh.id]);
});
