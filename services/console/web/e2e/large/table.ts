import { cpus, loadavg } from "node:os";

/** The value that `percent` of the values do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? NaN;
}

const began = Date.now();
const progress = (text: string): void => void process.stderr.write(`${((Date.now() - began) / 1000).toFixed(0).padStart(5)} s  ${text}\n`);

const median = (values: readonly number[]): number => percentile(values, 50);

interface Line {
  what: string;
  /** One list of values per round. */
  rounds: number[][];
  budget?: number;
  unit: string;
}

/** Figures of several rounds, with their budgets. */
export class Table {
  private lines = new Map<string, Line>();
  private single: Array<{ what: string; value: number; budget?: number; unit: string }> = [];

  /** Adds values of a round. Their 95th percentile has the budget. */
  add(round: number, what: string, values: readonly number[], budget?: number, unit = "ms"): void {
    const line = this.lines.get(what) ?? { what, rounds: [], budget, unit };
    this.lines.set(what, line);
    (line.rounds[round] ??= []).push(...values);
    progress(`round ${round + 1}: ${what}: p95 ${percentile(values, 95).toFixed(0)} ${unit}`);
  }

  /** Adds a value that is measured once. */
  once(what: string, value: number, budget?: number, unit = "ms"): void {
    this.single.push({ what, value, budget, unit });
    progress(`${what}: ${value.toFixed(1)} ${unit}`);
  }

  private rows(): Array<{ what: string; n: string; p50: string; value: number; budget?: number; unit: string }> {
    const several = [...this.lines.values()].map(({ what, rounds, budget, unit }) => {
      const measured = rounds.filter((values) => values.length > 0);
      const of = (percent: number) => median(measured.map((values) => percentile(values, percent)));
      return { what, n: measured.map((values) => values.length).join("+"), p50: of(50).toFixed(0), value: of(95), budget, unit };
    });
    return [...several, ...this.single.map((one) => ({ ...one, n: "1", p50: "" }))];
  }

  private isOver = ({ value, budget }: { value: number; budget?: number }): boolean => budget !== undefined && !(value <= budget);

  /** What exceeds its budget, or was not measured. */
  get over(): string[] {
    return this.rows().filter(this.isOver).map(({ what }) => what);
  }

  toString(title: string): string {
    const body = this.rows().map((row) => [
      row.what, row.n, row.p50, `${row.value.toFixed(row.unit === "ms" ? 0 : 1)} ${row.unit}`,
      row.budget === undefined ? "" : `≤ ${row.budget} ${row.unit}`, row.budget === undefined ? "" : this.isOver(row) ? "OVER" : "ok",
    ]);
    const all = [["figure", "n", "p50", "p95 or value", "budget", ""], ["---", "---", "---", "---", "---", "---"], ...body];
    const widths = all[0]!.map((_cell, column) => Math.max(...all.map((cells) => cells[column]!.length)));
    const load = loadavg().map((one) => one.toFixed(1)).join(" ");
    const lines = all.map((cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |`);
    return `\n${title}; ${cpus().length} cores, load average at the end ${load}. Several rounds: the median of their figures.\n\n${lines.join("\n")}\n`;
  }
}
