import { cpus, loadavg } from "node:os";
import { AxeBuilder } from "@axe-core/playwright";
import { type BrowserContext, expect, type Page } from "@playwright/test";

/** What must not happen in any test. */
export interface Faults {
  /** Violations of the Content-Security-Policy. */
  csp: string[];
  /** Requests to another origin than the server's. */
  foreign: string[];
  /** Exceptions that nobody caught, and errors on the browser's console. */
  errors: string[];
}

/** Answers that a test asks for. The browser logs them as errors by itself. */
const answered = /^Failed to load resource: the server responded with a status of (400|401|403|404|409|410|412|429|500|503)/;

/** Answers that a screen shows instead of its content. React logs them, too. */
const shown = /^ApiError: /;

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : "");

/** Collects the faults of all pages that a context has of the server. It may also visit the identity provider. */
export async function watch(context: BrowserContext, server: string, provider: string): Promise<Faults> {
  const faults: Faults = { csp: [], foreign: [], errors: [] };
  await context.exposeBinding("reportCspViolation", (_source, text: string) => void faults.csp.push(text));
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      const report = (window as unknown as { reportCspViolation: (text: string) => void }).reportCspViolation;
      report(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber} ${event.sample}`);
    });
  });
  context.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol === "data:" || protocol === "blob:" || origin === server) return;
    const ours = request.isNavigationRequest() ? origin !== provider : originOf(request.frame().url()) !== provider;
    if (ours) faults.foreign.push(`${request.method()} ${request.url()}`);
  });
  context.on("weberror", (error) => faults.errors.push(String(error.error().stack ?? error.error())));
  context.on("console", (message) => {
    const { url } = message.location();
    if (message.type() !== "error" || (url !== "" && originOf(url) !== server)) return;
    if (answered.test(message.text()) || shown.test(message.text())) return;
    (/Content.Security.Policy/i.test(message.text()) ? faults.csp : faults.errors).push(message.text());
  });
  return faults;
}

/** Fails if something happened. Soft, so that the test's own failure is shown, too. */
export function expectNoFaults(faults: Faults): void {
  expect.soft(faults.csp, "violations of the Content-Security-Policy").toEqual([]);
  expect.soft(faults.foreign, "requests to other origins").toEqual([]);
  expect.soft(faults.errors, "errors of the page").toEqual([]);
}

/** How much longer things take on this machine now than if it had nothing else to do. Limits of time are times this. */
export const slowness = (): number => Math.max(1, loadavg()[0]! / cpus().length);

/** What a page looks like: the four in which every screen must be usable. */
export const looks = [
  { colorScheme: "light", width: 1280, height: 800 },
  { colorScheme: "dark", width: 1280, height: 800 },
  { colorScheme: "light", width: 390, height: 844 },
  { colorScheme: "dark", width: 390, height: 844 },
] as const;

/** Every colour and every width once, for states that differ little from a screen that is looked at in all. */
export const twoLooks = [looks[0], looks[3]];

/** CONSOLE_LOOKS=two saves a pipeline half of the time. */
const allLooks: readonly (typeof looks)[number][] = process.env.CONSOLE_LOOKS === "two" ? twoLooks : looks;

/**
 * Requires the page to be accessible in its present state in every look: no serious violation of WCAG 2.2 AA that axe
 * finds, and nothing wider than the screen. Keeps a screenshot of each look in .output/screens.
 */
export async function expectAccessible(page: Page, name: string, chosen = allLooks): Promise<void> {
  const before = page.viewportSize();
  for (const { colorScheme, width, height } of chosen) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    await settle(page);
    const look = `${name}-${colorScheme}-${width}`;
    await page.screenshot({ path: `${import.meta.dirname}/.output/screens/${look}.png` });
    const { violations } = await new AxeBuilder({ page }).withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]).analyze();
    const serious = violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(" | ")}`);
    expect.soft(serious, `serious violations on ${look}`).toEqual([]);
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect.soft(wider, `${look} is wider than the screen`).toBeLessThanOrEqual(0);
  }
  await page.emulateMedia({ colorScheme: null });
  if (before) await page.setViewportSize(before);
}

/** Waits until two frames have been painted and no finite animation runs. Colours in a transition have no contrast yet. */
async function settle(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    await frame();
    await frame();
    const running = document.getAnimations().filter((one) => one.effect?.getTiming().iterations !== Infinity);
    await Promise.allSettled(running.map((one) => one.finished));
  });
}
