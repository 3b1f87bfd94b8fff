import { expectAccessible } from "./checks";
import { startSlack } from "./slack";
import { expect, test as base } from "./test";

const test = base.extend<{ slack: Awaited<ReturnType<typeof startSlack>> }>({
  slack: async ({}, use) => {
    const slack = await startSlack();
    await use(slack);
    await slack.stop();
  },
  flags: async ({ slack }, use) => use(slack.flags),
});

test("a workspace is connected, a channel gets messages, and both end", async ({ page, slack, server, faults }) => {
  // Slack's own page: whoever comes to it approves the app.
  await page.route(`${slack.url}/**`, (route) => {
    const asked = new URL(route.request().url()).searchParams;
    const back = `${server.url}/console/chat-app?code=good&state=${asked.get("state")}`;
    return route.fulfill({ status: 302, headers: { location: back } });
  });
  await page.goto("/console/default/triage");
  await page.getByRole("button", { name: "Account" }).click();
  await page.getByRole("menuitem", { name: "Integrations" }).click();
  await expect(page.getByText("not installed in a workspace")).toBeVisible();
  await expectAccessible(page, "integrations-none");
  await page.getByRole("button", { name: "Connect a workspace" }).click();
  await expect(page.getByText("Workspace Acme")).toBeVisible();
  expect(faults.foreign.splice(0), "the only page of another origin").toEqual([expect.stringContaining(`GET ${slack.url}/oauth/v2/authorize?client_id=1.2&`)]);

  await page.getByRole("button", { name: "Add a channel" }).click();
  await page.getByLabel("Channel", { exact: true }).selectOption({ label: "#security" });
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("row", { name: /#security/ })).toBeVisible();
  await expectAccessible(page, "integrations");
  await page.getByRole("button", { name: "Send a test to security" }).click();
  await expect(page.getByText("A test was sent to #security")).toBeVisible();
  expect(slack.posted.join()).toContain("C0SECURITY: *Test of a notification from Palisade*");

  await page.getByRole("button", { name: "Remove security" }).click();
  await expect(page.getByText("No channel gets messages yet.")).toBeVisible();
  await page.getByRole("button", { name: "Disconnect" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Disconnect" }).click();
  await expect(page.getByText("not installed in a workspace")).toBeVisible();
});

test("an installation that fails says why, and leads back", async ({ page }) => {
  await page.goto("/console/chat-app?error=access_denied");
  await expect(page.getByRole("alert")).toHaveText("The app was not approved at Slack.");
  await page.goto("/console/chat-app?code=good&state=forged");
  await expect(page.getByRole("alert")).toContainText("does not belong to an installation");
  const begun = await page.request.get("/api/agent/deployments/1/chat-app/install");
  const { redirect_url } = (await begun.json()) as { redirect_url: string };
  await page.goto(`/console/chat-app?code=bad&state=${new URL(redirect_url).searchParams.get("state")}`);
  await expect(page.getByRole("alert")).toContainText("Slack does not know the code");
  await expectAccessible(page, "integrations-refused");
});
