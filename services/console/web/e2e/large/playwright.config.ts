import { defineConfig } from "@playwright/test";
import tests from "../playwright.config";

/** Measures the console on a large store: `make console-bench`. It is no test: its figures depend on the machine. */
export default defineConfig({
  testDir: ".",
  testMatch: "*.measure.ts",
  outputDir: "../.output/large",
  workers: 1,
  timeout: 60 * 60_000,
  expect: { timeout: 120_000 },
  reporter: "line",
  use: { ...tests.use, trace: "off", screenshot: "only-on-failure" },
});
