import { expect, type Page } from "@playwright/test";
import type { Server } from "../server";
import type { Probe } from "./probe";
import { deployment } from "./store";
import type { Table } from "./table";

const bulkTimeout = 10 * 60_000;

interface Selection {
  name: string;
  search: string;
  /** Milliseconds in which a person gets the number that would change. */
  previewBudget?: number;
}

/** A decision about everything that matches, with its preview and its undo, while another person works. */
export async function measureBulk(page: Page, server: Server, probe: Probe, table: Table): Promise<void> {
  const token = await server.jwt();
  const one = await oneFinding(server, token);
  const some: Selection = { name: "of one rule", search: "?everywhere=true&rule=go.lang.security.injection.rule-123", previewBudget: 300 };
  for (const selection of [some, { name: "of the whole store", search: "?everywhere=true" }]) {
    await probe.show(`/console/${deployment}/triage${selection.search}`, "#finding-0");
    await probe.answers();
    const preview = await probe.keyToPaint("A", "dialog[open] p[role=status]");
    const dialog = page.getByRole("dialog", { name: "Decide about everything that matches" });
    const change = dialog.getByRole("button", { name: /^Change / });
    const number = Number(((await change.textContent()) ?? "").replace(/\D/g, ""));
    const what = `${selection.name}, ${number.toLocaleString("en")} findings`;
    table.once(`preview of everything that matches: ${what}`, preview, selection.previewBudget);

    const other = new Other(server, token, one);
    table.once(`decision: ${what}`, await timed(() => change.click(), () => message(page, /^Changed:/)));
    await other.stop(table, `during the decision ${selection.name}`);

    const meanwhile = new Other(server, token, one);
    // The message with its button may have gone while the other person waited.
    table.once(`undo: ${what}`, await timed(() => page.keyboard.press("z"), () => message(page, /^Undone:/)));
    await meanwhile.stop(table, `during the undo ${selection.name}`);
    await probe.answers();
  }
}

const message = (page: Page, text: RegExp) => page.getByRole("status").locator("div").filter({ hasText: text }).first();

async function timed(run: () => Promise<void>, shown: () => ReturnType<typeof message>): Promise<number> {
  const began = Date.now();
  await run();
  await expect(shown()).toBeVisible({ timeout: bulkTimeout });
  return Date.now() - began;
}

const issues = "/api/agent/deployments/1/issues";

async function oneFinding(server: Server, token: string): Promise<string> {
  const filter = { aggregateIssueStates: ["AGGREGATE_ISSUE_STATE_FIXED", "AGGREGATE_ISSUE_STATE_IGNORED_CODE"] };
  const { issues: found } = await server.call<{ issues: Array<{ issue: { id: string } }> }>("POST", issues, { filter, limit: 1 }, token);
  if (!found[0]) throw new Error("the store has no finding that is ignored in the code");
  return found[0].issue.id;
}

/** Another person, who reads lists all the time, and decides about one finding that is not in the selection. */
class Other {
  private readonly lists: number[] = [];
  private ended = false;
  private readonly reading: Promise<void>;
  private readonly deciding: Promise<void>;
  private decided: number | undefined;

  constructor(private readonly server: Server, private readonly token: string, private readonly finding: string) {
    this.reading = this.read();
    this.deciding = this.decide();
  }

  private async read(): Promise<void> {
    for (let n = 0; !this.ended; n++) {
      const began = performance.now();
      const body = { filter: { severities: [n % 2 ? "SEVERITY_HIGH" : "SEVERITY_LOW"] }, limit: 100, sortBy: "SORT_BY_RELEVANT_SINCE" };
      await this.server.call("POST", issues, body, this.token);
      this.lists.push(performance.now() - began);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  private async decide(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 300));
    const began = performance.now();
    const body = { filter: { ids: [this.finding] }, params: { note: `Looked at ${Date.now()}` } };
    await this.server.call("PATCH", "/api/agent/deployments/1/findings/v2", body, this.token);
    this.decided = performance.now() - began;
  }

  /** Ends, and adds what was measured. */
  async stop(table: Table, when: string): Promise<void> {
    this.ended = true;
    await Promise.all([this.reading, this.deciding]);
    table.add(0, `list answer for another person, ${when}`, this.lists, 100);
    table.once(`decision of another person, ${when}`, this.decided ?? NaN);
  }
}
