import { existsSync } from "node:fs";
import { defineConfig } from "@playwright/test";
import { slowness } from "./checks";

const programs = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

// A busy machine needs longer. Limits that are promises to people are in the tests.
const slack = Math.min(slowness(), 6);

export default defineConfig({
  testDir: ".",
  outputDir: ".output/results",
  globalSetup: "./global.ts",
  // A test that passes the second time is a bug of the test or of the console.
  retries: 0,
  workers: 2,
  timeout: 120_000 * slack,
  expect: { timeout: 30_000 * slack },
  forbidOnly: !!process.env.CI,
  reporter: [["list"], ["html", { outputFolder: ".output/report", open: "never" }]],
  use: {
    browserName: "chromium",
    viewport: { width: 1280, height: 800 },
    locale: "en-GB",
    timezoneId: "UTC",
    trace: "retain-on-failure",
    screenshot: "only-on-failure",
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? programs.find((path) => existsSync(path)),
      // Containers have no namespaces for Chromium's sandbox, and a small /dev/shm. No request but to the server.
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"],
    },
  },
});
