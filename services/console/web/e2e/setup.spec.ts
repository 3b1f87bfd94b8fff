import { readFileSync } from "node:fs";
import { expectAccessible } from "./checks";
import { report } from "./fill";
import { expect, test } from "./test";

test.use({ store: "empty" });

test("the first start prints a link, and a dropped report leads to the first finding", { tag: "@smoke" }, async ({ page, server }) => {
  expect(server.printed, "the one-time link of the first start").toMatch(/\/auth\/link\?code=\S+/);
  await page.goto("/console/");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Set-up");
  await page.goto("/console/default/triage");
  await expect(page.getByText("No findings yet")).toBeVisible();
  await expectAccessible(page, "triage-first");
  await page.getByRole("link", { name: "Upload the first report" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Set-up");

  const file = await page.evaluateHandle((text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], "gosec.sarif", { type: "application/json" }));
    return data;
  }, readFileSync(report("gosec.sarif"), "utf8"));
  await page.getByText("Drop a report here", { exact: true }).dispatchEvent("drop", { dataTransfer: file });
  await expect(page.getByText("309 new findings")).toBeVisible();
  await expectAccessible(page, "setup");
  await page.getByRole("link", { name: "Triage the findings" }).click();
  await expect(page.getByRole("listbox", { name: "Findings" }).getByRole("option").first()).toContainText("my/project");
});

test("a snippet has a fresh token that may only upload, and its scan is awaited", async ({ page, server }) => {
  await page.goto("/console/default/setup");
  await page.getByRole("tab", { name: "curl" }).click();
  const panel = page.getByRole("tabpanel", { name: "curl" });
  await expect(panel).toContainText("YOUR_TOKEN");
  await panel.getByRole("button", { name: "Make a token" }).click();
  await expect(panel).not.toContainText("YOUR_TOKEN");
  const token = /[a-z]{3,}_[0-9a-zA-Z]{20,}/.exec(await panel.innerText())?.[0];
  expect(token, "the token in the snippet").toBeTruthy();
  await expect(page.getByText("Waiting for the first scan…")).toBeVisible();
  await expect(server.call("GET", "/api/v1/deployments/default/findings", undefined, token)).rejects.toThrow("SCOPE_MISSING");
  await server.palisade("upload", report("gosec.sarif"), "--project", "acme/first", "--ref", "main", "--deployment", "default", "--token", token ?? "");
  await expect(page.getByText("A scan of acme/first has arrived")).toBeVisible({ timeout: 60_000 });
  expect(await page.evaluate(() => performance.getEntriesByType("navigation").length), "no reload").toBe(1);
});

test("a file that is no report is refused with the reason", async ({ page }) => {
  await page.goto("/console/default/setup");
  await page.getByLabel("Choose a file").last().setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("not a report") });
  await expect(page.getByRole("alert")).toContainText("The report was not stored");
  await expectAccessible(page, "setup-refused");
});
