import type { Page } from "@playwright/test";
import type { Probe } from "./probe";
import { deployment } from "./store";
import type { Table } from "./table";

/** Budgets in milliseconds: the 95th percentile of answers. */
const listBudget = 100;
const countsBudget = 300;

const repeats = 15;
const firstRow = "#finding-0";
const address = (search: Record<string, string>): string => `/console/${deployment}/triage?${new URLSearchParams({ everywhere: "true", ...search })}`;

/** Conditions that many or few findings meet. Each round has others, so that no answer is remembered. */
function conditions(round: number): Array<Record<string, string>> {
  const rule = (n: number) => `go.lang.security.injection.rule-${String(round * 20 + n).padStart(3, "0")}`;
  const project = (n: number) => `bench/project-${String(round * 4 + n).padStart(2, "0")}`;
  return [
    { severity: "critical" }, { severity: "high,medium" }, { severity: "low", type: "sca" }, { type: "secrets" }, { state: "any" }, { state: "ignored" },
    { project: project(0) }, { project: project(1), severity: "critical" }, { project: `${project(2)},${project(3)}`, ref: "refs/heads/main" },
    { rule: rule(0) }, { rule: `${rule(1)},${rule(2)}` }, { rule: rule(3), project: project(0) }, { ref: "refs/heads/release", severity: "high" },
    { verdict: "true_positive" }, { category: "security", severity: "low" }, { everywhere: "" }, { since: "week", severity: "medium" },
  ];
}

/** Lists as they are opened, filtered, ordered, grouped and jumped in. */
export async function measureLists(page: Page, probe: Probe, table: Table, round: number, total: number): Promise<void> {
  const take = async (what: string, painted: number[], path = "issues", budget = listBudget) => {
    const answers = await probe.answers();
    const of = (wanted: string) => answers.filter((answer) => answer.path === wanted).map(({ ms }) => ms);
    table.add(round, `${path === "issues" ? "list" : "groups"} answer, ${what}`, of(path), budget);
    table.add(round, `${path === "issues" ? "list" : "groups"} painted, ${what}`, painted);
    table.add(round, "counts answer", [...of("issue_counts")], countsBudget);
    table.add(round, "counts answer, values of filters", [...of("issue_filters")], countsBudget);
  };
  const open = async (searches: Array<Record<string, string>>, selector: string): Promise<number[]> => {
    const painted: number[] = [];
    for (const search of searches) {
      painted.push(await probe.show(address(search), selector));
      await probe.settle();
    }
    return painted;
  };

  await take("first page", await open(Array.from({ length: repeats }, (_, n) => ({ state: n % 2 ? "open,reviewing" : "open" })), firstRow));
  await take("filtered", await open(conditions(round), firstRow));
  const orders = ["since", "severity", "project", "rule", "state", "ref"].flatMap((sort): Array<Record<string, string>> => [{ sort }, { sort, oldest: "true" }]);
  await take("ordered", await open(orders.map((order, n) => ({ ...order, ...(n % 3 === round && { severity: "high" }) })), firstRow));
  const groups = ["rule", "project"].flatMap((group) => conditions(round).slice(0, 8).map((search) => ({ group, ...search })));
  await take("by rule and project", await open(groups, "main li button, li button[aria-label^='Show the findings']"), "issues/search", countsBudget);

  await open([{}], firstRow);
  await probe.answers();
  const rows = [Math.min(100_000, total), ...Array.from({ length: repeats }, (_, n) => 1 + ((n * 7_919 + round * 104_729) * 613) % total)];
  const painted: number[] = [];
  for (const row of rows) {
    painted.push(await jump(page, probe, row));
    await probe.settle();
  }
  await take("jump to a row", painted);
}

/** Goes to a finding by its number, counted from 1. Milliseconds until it is painted. */
export async function jump(page: Page, probe: Probe, number: number): Promise<number> {
  await page.getByRole("button", { name: "Go to finding number" }).click();
  await page.getByRole("textbox", { name: "Go to finding number" }).fill(String(number));
  return probe.keyToPaint("Enter", `[role=option][aria-current=true][aria-posinset="${number}"]`);
}
