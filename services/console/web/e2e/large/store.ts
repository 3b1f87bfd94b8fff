import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Server } from "../server";

/** The deployment of stores that `palisade-bench seed` fills. */
export const deployment = "bench";

const findings = process.env.CONSOLE_BENCH_FINDINGS || "1000000";
const given = process.env.CONSOLE_BENCH_STORE;

/** Starts a server over a copy of the given store, or over a new one that it fills first. */
export async function startLarge(): Promise<Server> {
  const flags = ["--deployment", deployment];
  if (given) return Server.start({ store: given, flags });
  const data = mkdtempSync(join(tmpdir(), "palisade-large-"));
  try {
    await seed(data);
    return await Server.start({ data, flags });
  } catch (error) {
    rmSync(data, { recursive: true, force: true });
    throw error;
  }
}

function seed(data: string): Promise<void> {
  const program = process.env.PALISADE_BENCH;
  if (!program) throw new Error("PALISADE_BENCH is not set: run `make console-bench`");
  const child = spawn(program, ["seed", "--findings", findings, data], { stdio: "inherit" });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (status) => (status === 0 ? resolve() : reject(new Error(`${program} seed ended with status ${status}`))));
  });
}
