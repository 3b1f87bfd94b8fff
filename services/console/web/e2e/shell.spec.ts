import { expectAccessible, twoLooks } from "./checks";
import { expect, test } from "./test";

/** The screens of the navigation: the keys that open them, the end of their address, and their heading. */
const screens = [
  { keys: "gt", path: "triage", title: "Triage" },
  { keys: "gs", path: "scans", title: "Scans" },
  { keys: "gp", path: "projects", title: "Projects" },
  { keys: "go", path: "overview", title: "Overview" },
  { keys: "gu", path: "setup", title: "Set-up" },
  { keys: "ga", path: "api", title: "API" },
];

test("every screen opens by keys, by its link and by its address", async ({ page }) => {
  await page.goto("/console/");
  await expect(page).toHaveURL(/\/console\/default\/triage/);
  for (const { keys, path, title } of screens) {
    // Both keys must come within a second, also on a busy machine.
    await expect(async () => {
      for (const key of keys) await page.keyboard.press(key);
      await expect(page).toHaveURL(new RegExp(`/console/default/${path}`), { timeout: 2_000 });
    }).toPass();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(title);
    await expect(page).toHaveTitle(new RegExp(`^${title} `));
  }
  const navigation = page.getByRole("navigation", { name: "Main" });
  for (const { path, title } of screens) {
    const link = navigation.getByRole("link", { name: title, exact: true });
    await link.click();
    await expect(link).toHaveAttribute("aria-current", "page");
    await expect(page).toHaveURL(new RegExp(`/console/default/${path}`));
    await page.reload();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(title);
  }
});

test("the keyboard reaches the content, the help and the account", async ({ page }) => {
  await page.goto("/console/default/api");
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await page.keyboard.press("Tab");
  const skip = page.getByRole("link", { name: "Skip to content" });
  await expect(skip).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("main")).toBeFocused();

  await page.keyboard.press("?");
  const help = page.getByRole("dialog", { name: "Keys" });
  await expect(help).toBeVisible();
  await expect(help).toContainText("Overview");
  await page.keyboard.press("Escape");
  await expect(help).toBeHidden();

  await page.getByRole("button", { name: "Account" }).focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("menu")).toContainText("Sign out");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("button", { name: "Account" })).toBeFocused();
});

test("a chosen theme holds on every page and after a reload", async ({ page }) => {
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto("/console/default/scans");
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  const light = await background();
  await page.getByRole("button", { name: "Account" }).click();
  await page.getByRole("menuitemradio", { name: "Dark" }).click();
  await expect.poll(background).not.toBe(light);
  const dark = await background();
  await page.reload();
  expect(await background(), "before the scripts have run").toBe(dark);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.getByRole("button", { name: "Account" }).click();
  await page.getByRole("menuitemradio", { name: "System" }).click();
  await expect.poll(background).toBe(dark);
  await page.emulateMedia({ colorScheme: "light" });
  await expect.poll(background).toBe(light);
});

test("help, menu and an unknown page are accessible in every look", async ({ page }) => {
  test.slow();
  await page.goto("/console/default/setup");
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toBeVisible();
  await expectAccessible(page, "shell-keys", twoLooks);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Account" }).click();
  await expect(page.getByRole("menu")).toBeVisible();
  await expectAccessible(page, "shell-account", twoLooks);
  await page.keyboard.press("Escape");

  await page.goto("/console/default/no-such-page");
  await expect(page.getByText("Not found")).toBeVisible();
  await expectAccessible(page, "shell-not-found", twoLooks);
  await page.goto("/console/no-such-organization/triage");
  await expect(page.getByText("Not found")).toBeVisible();
});
