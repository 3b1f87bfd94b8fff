import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** The API token that the first start creates. The workers get it from the process that starts them. */
export const adminToken = (process.env.E2E_TOKEN ??= `sgp_${randomBytes(20).toString("hex")}`);

const run = promisify(execFile);

function binary(): string {
  const path = process.env.PALISADE_BINARY;
  if (!path) throw new Error("PALISADE_BINARY is not set: global.ts sets it");
  return path;
}

/** Only these variables reach the program: settings of the developer's shell must not change what is tested. */
const environment = (more: Record<string, string>) => ({ PATH: process.env.PATH ?? "", HOME: tmpdir(), ...more });

/** A server process with a store of its own in a temporary directory. */
export class Server {
  /** Without a slash at the end. */
  url = "";
  private log = "";
  private process: ChildProcess | undefined;

  private constructor(readonly data: string) {}

  /** Starts a server on a free port. Its store is a copy of `store`, or the one in `data`, which `stop` removes, or new. */
  static async start({ store, data, flags = [] }: { store?: string; data?: string; flags?: string[] } = {}): Promise<Server> {
    const server = new Server(data ?? mkdtempSync(join(tmpdir(), "palisade-e2e-")));
    if (store) cpSync(store, server.data, { recursive: true });
    try {
      await server.serve(flags);
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  private async serve(flags: string[]): Promise<void> {
    const free = ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    const child = spawn(binary(), ["serve", "--data", this.data, ...free, ...flags], {
      env: environment({ PALISADE_BOOTSTRAP_TOKEN: adminToken }),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.process = child;
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`the server did not start within a minute:\n${this.log}`)), 60_000);
      const read = (chunk: Buffer) => {
        this.log += chunk.toString();
        const serving = /msg="palisade is serving".* url=(\S+)/.exec(this.log);
        if (!serving?.[1] || this.url) return;
        this.url = serving[1];
        clearTimeout(late);
        resolve();
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.once("error", reject);
      child.once("exit", (status) => {
        clearTimeout(late);
        reject(new Error(`the server ended with status ${status}:\n${this.log}`));
      });
    });
  }

  /** Everything that the server has printed. */
  get printed(): string {
    return this.log;
  }

  /** Runs a command of the program on this server and its store, and returns its standard output. */
  palisade(...args: string[]): Promise<string> {
    return this.run(args, { PALISADE_PUBLIC_URL: this.url });
  }

  /** A user token of a local user. Its issuer is the one in the store: the copy of a store keeps the URL of the original. */
  jwt(email = "admin@localhost"): Promise<string> {
    return this.run(["jwt", "--email", email, "--ttl", "12h"], {});
  }

  private async run(args: string[], more: Record<string, string>): Promise<string> {
    const env = environment({ PALISADE_URL: this.url, PALISADE_TOKEN: adminToken, PALISADE_DATA: this.data, ...more });
    return (await run(binary(), args, { env, maxBuffer: 64 << 20 })).stdout.trim();
  }

  /** Calls the API as the administrator, and returns the answer's JSON. */
  async call<T>(method: string, path: string, body?: unknown, token = adminToken): Promise<T> {
    const response = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  /** Stops the process, as a service manager does, and waits until it has ended. */
  async halt(): Promise<void> {
    const child = this.process;
    this.process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
  }

  /** Stops the process and removes the store. */
  async stop(): Promise<void> {
    await this.halt();
    rmSync(this.data, { recursive: true, force: true });
  }
}
