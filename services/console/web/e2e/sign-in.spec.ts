import { expectAccessible, twoLooks } from "./checks";
import { people } from "./provider";
import { signInByLink, signInByProvider } from "./sign-in";
import { expect, test } from "./test";

test.use({ who: "nobody" });

test("who is not signed in comes to the page that they asked for, by way of the provider", async ({ page, context, server }) => {
  await page.goto("/console/default/scans?tab=held");
  await expect(page).toHaveURL(/\/console\/sign-in\?return=/);
  await expectAccessible(page, "sign-in");
  await page.getByRole("link", { name: /Continue with/ }).or(page.getByRole("button", { name: /Continue with/ })).click();
  await signInByProvider(page, people.admin.email);
  await expect(page).toHaveURL(`${server.url}/console/default/scans?tab=held`);
  const cookie = (await context.cookies()).find(({ name }) => name === "palisade");
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Lax", path: "/" });
  expect(await page.evaluate(() => document.cookie), "scripts cannot read the session").toBe("");

  await page.getByRole("button", { name: "Account" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await expect(page).toHaveURL(/\/console\/sign-in/);
  expect((await context.cookies()).some(({ name }) => name === "palisade")).toBe(false);
});

test("a scanner gets its token from a person who is signed in", async ({ page, server }) => {
  const key = "0b2c9a3e-7d41-4f5e-9a63-1c8e5f2d7a90";
  await page.goto(`/login?cli-token=${key}`);
  await expect(page.getByLabel(/JSON Web Token/)).toBeVisible();
  await page.getByRole("link", { name: "Sign in with your identity provider" }).click();
  await signInByProvider(page, people.admin.email);
  await expect(page).toHaveURL(`${server.url}/login?cli-token=${key}`);
  await expect(page.getByText("You are signed in to the console.")).toBeVisible();
  await expect(page.getByLabel(/JSON Web Token/)).toBeHidden();
  await expectAccessible(page, "scanner-login", twoLooks);
  await page.getByRole("button", { name: "Give the scanner a token" }).click();
  await expect(page.getByRole("status")).toContainText("Done. Go back to your terminal");
  const picked = await page.request.post("/api/agent/tokens/requests", { data: { token_request_key: key } });
  expect(((await picked.json()) as { token: string }).token).toMatch(/^sgp_/);
});

test("a person without a membership is told so", async ({ page }) => {
  await page.goto("/auth/login");
  await signInByProvider(page, people.stranger.email);
  await expect(page.getByRole("heading", { name: "You are not a member" })).toBeVisible();
  await expectAccessible(page, "sign-in-refused");
});

test("a link works once", async ({ page, another, server }) => {
  const link = await server.palisade("console-link");
  await signInByLink(page, link);
  const other = await (await another("nobody")).newPage();
  await other.goto(link);
  await expect(other.getByRole("heading", { name: "This link does not work any more" })).toBeVisible();
  await expectAccessible(other, "sign-in-dead-link");
});

test("a session that is revoked ends in the other browser with its next request", async ({ page, another, server }) => {
  await signInByLink(page, await server.palisade("console-link"));
  const other = await (await another("operator")).newPage();
  await other.goto("/console/default/projects");
  await expect(other.getByRole("heading", { level: 1 })).toHaveText("Projects");
  await page.goto("/console/default/sessions");
  await expectAccessible(page, "sessions");
  await page.getByRole("button", { name: "Revoke all others" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke all others" }).click();
  await expect(page.getByText(/revoked/i).first()).toBeVisible();
  await other.reload();
  await expect(other).toHaveURL(/\/console\/sign-in/);
});
