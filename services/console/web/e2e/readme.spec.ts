import { projects } from "./fill";
import { expect, test } from "./test";

/** `make screenshots` writes the pictures into the repository. Otherwise they stay in .output, and only have to be possible. */
const directory = process.env.README_SCREENSHOTS ? `${import.meta.dirname}/../../../../docs/images` : `${import.meta.dirname}/.output/screens`;

test.use({ viewport: { width: 1280, height: 760 }, deviceScaleFactor: 2 });

test("the pictures of the README", async ({ page }) => {
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(`/console/default/triage?project=${encodeURIComponent(projects.main)}&severity=high`);
  await expect(page.getByRole("listbox", { name: "Findings" }).getByRole("option").first()).toBeVisible();
  await expect(page.getByRole("region", { name: "Preview" }).getByText("History")).toBeVisible();
  await page.screenshot({ path: `${directory}/console-triage.png` });

  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(`/console/default/pull-requests?project=${encodeURIComponent(projects.main)}&number=7`);
  await expect(page.getByRole("listbox").getByRole("option").first()).toBeVisible();
  await expect(page.getByRole("region", { name: "Preview" }).getByText("History")).toBeVisible();
  await page.screenshot({ path: `${directory}/console-pull-request.png` });
});
