import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type FullConfig } from "@playwright/test";
import { fill } from "./fill";
import { signInFlags, startProvider } from "./provider";
import { Server } from "./server";
import { signInEverybody } from "./sign-in";

/** What the tests get from here, as environment variables: workers are processes of their own. */
export const shared = {
  store: () => given("E2E_STORE"),
  issuer: () => given("E2E_ISSUER"),
};

function given(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run the tests with \`npm run e2e\``);
  return value;
}

/** Builds the server if PALISADE_BINARY names none. */
function build(dir: string): void {
  if (process.env.PALISADE_BINARY) return;
  const file = join(dir, "palisade");
  const repository = join(import.meta.dirname, "../../../..");
  execFileSync("go", ["build", "-trimpath", "-tags=sqlite_stat4,grpcnotrace", "-o", file, "./cmd/palisade"], { cwd: repository, stdio: "inherit" });
  process.env.PALISADE_BINARY = file;
}

/** Starts the identity provider, and fills a store that each test gets a copy of. */
export default async function setUp(config: FullConfig): Promise<() => Promise<void>> {
  const dir = mkdtempSync(join(tmpdir(), "palisade-e2e-run-"));
  const provider = await startProvider();
  let server: Server | undefined;
  const tearDown = async () => {
    await server?.stop();
    await provider.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    build(dir);
    server = await Server.start({ flags: signInFlags(provider.issuer) });
    await fill(server);
    const browser = await chromium.launch(config.projects[0]?.use.launchOptions);
    process.env.E2E_COOKIES = JSON.stringify(await signInEverybody(browser, server));
    await browser.close();
    await server.halt(); // its store stays for the tests
    process.env.E2E_STORE = server.data;
    process.env.E2E_ISSUER = provider.issuer;
    return tearDown;
  } catch (error) {
    await tearDown();
    throw error;
  }
}
