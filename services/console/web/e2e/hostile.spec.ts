import { writeFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { elsewhere, flag, hostileReport, hostileTexts } from "./hostile";
import { expect, test } from "./test";

/** Nothing that a hostile text names exists in the page, no script of it ran, and links to other hosts are harmless. */
async function expectOnlyText(page: Page, where: string): Promise<void> {
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.getByRole("main").getByText("Loading", { exact: true })).toHaveCount(0);
  const found = await page.evaluate(([hit, origin]) => {
    const own = window.location.origin;
    const injected = [
      "iframe", "object", "embed", "base", "form[action]", "style", "[onerror],[onload],[onclick]", "script:not([src])",
      `[src^="${origin}"],[srcset]`, "img:not([src^='/'])", "meta[http-equiv]",
    ].filter((selector) => document.querySelector(selector));
    const links = [...document.querySelectorAll<HTMLAnchorElement>("a[href]")].flatMap(({ href, rel, target }) => {
      const url = new URL(href);
      if (url.origin === own) return [];
      const safe = /^https?:$/.test(url.protocol) && /\bnoopener\b/.test(rel) && /\bnoreferrer\b/.test(rel) && target === "_blank";
      return safe ? [] : [href];
    });
    const wider = document.documentElement.scrollWidth > window.innerWidth;
    return { hit: (window as unknown as Record<string, unknown>)[hit!], injected, links, wider };
  }, [flag, elsewhere] as const);
  expect.soft(found, where).toEqual({ hit: undefined, injected: [], links: [], wider: false });
}

test.use({ store: "empty" });

test("hostile texts of a scanner are text on every screen", async ({ page, server }, info) => {
  test.setTimeout(600_000);
  const file = info.outputPath("hostile.sarif");
  writeFileSync(file, hostileReport());
  const project = `acme/<b>${flag}</b>`;
  for (const ref of ["main", `refs/heads/<img-src=x-onerror=window.${flag}=15>`, "refs/pull/7/merge"]) {
    await server.palisade("upload", file, "--project", project, "--ref", ref);
  }
  await page.goto("/console/default/triage?state=any");
  const list = page.getByRole("listbox", { name: "Findings" });
  await expect(list.locator("[aria-current=true]")).toHaveAttribute("aria-posinset", "1");
  await expectOnlyText(page, "triage");
  const preview = page.getByRole("region", { name: "Preview" });
  const seen: string[] = [];
  for (let at = 0; at < 2 * hostileTexts.length; at++) {
    await expect(preview.getByText("Loading the finding")).toHaveCount(0);
    await preview.evaluate((section) => section.querySelectorAll("details").forEach((one) => (one.open = true)));
    await expectOnlyText(page, `the preview of finding ${at + 1}`);
    seen.push((await preview.textContent()) ?? "");
    await page.keyboard.press("j");
  }
  for (const text of hostileTexts.filter((one) => /[<>]/.test(one))) {
    expect(seen.some((shown) => shown.includes(text)), `somewhere the text is shown as it is: ${text}`).toBe(true);
  }

  for (const path of ["findings/1", "findings/5", "findings/18", "scans", "scans?tab=list", "scans?tab=pulls", "scans/1", "projects", "projects?id=1", "overview", "setup"]) {
    await page.goto(`/console/default/${path}`);
    await expectOnlyText(page, path);
  }
  await page.goto(`/console/default/pull-requests?project=${encodeURIComponent(project)}&number=7`);
  await expectOnlyText(page, "pull request");
  await page.goto("/console/default/triage?group=rule");
  await expectOnlyText(page, "groups");
});
