import { type Browser, type BrowserContext, expect, type Page } from "@playwright/test";
import { people, type Person } from "./provider";
import type { Server } from "./server";

/** Who uses a browser: the operator of the server, a person of the identity provider, or nobody. */
export type Who = Person | "operator" | "nobody";

type Cookies = Awaited<ReturnType<BrowserContext["cookies"]>>;

/** Signs in with a one-time link of the server's operator. */
export async function signInByLink(page: Page, link: string): Promise<void> {
  await page.goto(link);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page).toHaveURL(/\/console\//);
}

/** Signs in at the identity provider: types an address and any password, and lets the console know who it is. */
export async function signInByProvider(page: Page, email: string): Promise<void> {
  await page.getByPlaceholder("Enter any login").fill(email);
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

/** Signs everybody in to a server, and returns the cookies of each. Servers with a copy of its store know them, too. */
export async function signInEverybody(browser: Browser, server: Server): Promise<Partial<Record<Who, Cookies>>> {
  const cookies: Partial<Record<Who, Cookies>> = {};
  const keep = async (who: Who, signIn: (page: Page) => Promise<void>) => {
    const context = await browser.newContext();
    await signIn(await context.newPage());
    cookies[who] = await context.cookies(server.url);
    await context.close();
  };
  await keep("operator", async (page) => signInByLink(page, await server.palisade("console-link")));
  for (const who of ["admin", "reader", "member"] as const) {
    await keep(who, async (page) => {
      await page.goto(`${server.url}/auth/login`);
      await signInByProvider(page, people[who].email);
      await expect(page).toHaveURL(/\/console\//);
    });
  }
  return cookies;
}

/** Gives a browser the session that somebody has in the filled store. In an empty store, only the operator exists. */
export async function signIn(context: BrowserContext, server: Server, who: Who, store: "filled" | "empty"): Promise<void> {
  if (who === "nobody") return;
  if (store === "empty") {
    const page = await context.newPage();
    await signInByLink(page, await server.palisade("console-link"));
    await page.close();
    return;
  }
  const cookies = (JSON.parse(process.env.E2E_COOKIES ?? "{}") as Partial<Record<Who, Cookies>>)[who];
  if (!cookies?.length) throw new Error(`nobody signed in as ${who}`);
  await context.addCookies(cookies);
}
