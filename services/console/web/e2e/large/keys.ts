import type { Page } from "@playwright/test";
import { jump } from "./lists";
import type { Probe } from "./probe";
import type { Table } from "./table";

const keyBudget = 50;
const moves = 120;
const decided = 30;
/** A person who reads nothing presses ten keys a second. */
const pause = 100;

const current = (number: number): string => `[role=option][aria-current=true][aria-posinset="${number}"]`;

/** Keys until their effect is painted: moves at row 100,000, decisions and their undo at the beginning. */
export async function measureKeys(page: Page, probe: Probe, table: Table, round: number, total: number): Promise<void> {
  const start = Math.min(100_000, total - 2 * moves);
  await jump(page, probe, start);
  await probe.settle();
  const press = async (key: string, number: number): Promise<number> => {
    const took = await probe.keyToPaint(key, current(number));
    await page.waitForTimeout(pause);
    return took;
  };
  const steps: number[] = [];
  for (let n = 1; n <= moves; n++) steps.push(await press("j", start + n));
  for (let n = moves - 1; n >= 0; n--) steps.push(await press("k", start + n));
  table.add(round, "key to paint: j and k", steps, keyBudget);

  await jump(page, probe, 1);
  await probe.settle();
  const decisions: number[] = [];
  for (let n = 0; n < decided; n++) decisions.push(await press("faxr"[n % 4]!, n + 2));
  await probe.settle();
  const undos: number[] = [];
  for (let n = decided; n > 0; n--) undos.push(await press("z", n));
  await probe.settle();
  table.add(round, "key to paint: decisions", decisions, keyBudget);
  table.add(round, "key to paint: undo", undos, keyBudget);
  const answers = await probe.answers();
  table.add(round, "counts answer, while people decide", answers.filter(({ path }) => path === "issue_counts" || path === "issue_filters").map(({ ms }) => ms), 300);
}
