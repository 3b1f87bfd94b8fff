import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Server } from "./server";

const repository = join(import.meta.dirname, "../../../..");
const reports = join(repository, "services/scans/testdata");

/** The path of a real report in the tests of uploads. */
export const report = (name: string): string => join(reports, name);

/** The projects of the filled store. */
export const projects = {
  /** 309 findings, a pull request, triage, and a scan whose closes are held. */
  main: "pocketbase/pocketbase",
  frontend: "jquery/jquery",
  gateway: "grpc-ecosystem/grpc-gateway",
  /** All kinds of findings, a data flow among them. Its team is web-team. */
  shop: "acme/shop",
} as const;

interface Result {
  locations?: Array<{ physicalLocation: { artifactLocation: { uri: string }; region?: { startLine: number; snippet?: { text: string } } } }>;
}

interface Sarif {
  runs: Array<{ results: Result[] }>;
}

/** Stores a changed copy of a report for the time of `use`. */
export async function changedReport(path: string, change: (sarif: Sarif) => void, use: (file: string) => Promise<unknown>): Promise<void> {
  const sarif = JSON.parse(readFileSync(path, "utf8")) as Sarif;
  change(sarif);
  const dir = mkdtempSync(join(tmpdir(), "palisade-report-"));
  try {
    const file = join(dir, "report.sarif");
    writeFileSync(file, JSON.stringify(sarif));
    await use(file);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const commit = (digit: string): string => digit.repeat(40);

/** Fills an empty store with reports of real scans, as pipelines do, and decides about some findings. */
export async function fill(server: Server): Promise<void> {
  const upload = (file: string, project: string, ...more: string[]) =>
    server.palisade("upload", file, "--project", project, "--repo-url", `https://github.com/${project}`, ...more);
  const gosec = report("gosec.sarif");

  await upload(gosec, projects.main, "--ref", "main", "--commit", commit("1"));
  // The pull request adds three findings that its base does not have, on lines of their own.
  await changedReport(gosec, ({ runs: [run] }) => {
    for (const [at, result] of run!.results.slice(0, 3).entries()) {
      const added = structuredClone(result);
      const place = added.locations![0]!.physicalLocation;
      place.artifactLocation.uri = `apis/added_${at}.go`;
      run!.results.push(added);
    }
  }, (file) => upload(file, projects.main, "--ref", "refs/pull/7/merge", "--commit", commit("2")));
  await upload(report("eslint.sarif"), projects.frontend, "--ref", "main", "--commit", commit("3"));
  await upload(report("staticcheck.sarif"), projects.gateway, "--ref", "main", "--commit", commit("4"));
  const formats = ["semgrep.json", "trivy.json", "gitleaks.json", "osv-scanner.json"].map((name) => `formats/${name}`);
  for (const name of ["facts/15-snykcode-codeflow-dropped.sarif", ...formats]) await upload(report(name), projects.shop, "--ref", "main", "--commit", commit("5"));

  await decide(server);
  // The scanner of the gateway breaks: it reports nothing any more. All closes are held.
  await changedReport(report("staticcheck.sarif"), ({ runs: [run] }) => run!.results.splice(5), (file) =>
    upload(file, projects.gateway, "--ref", "main", "--commit", commit("6")));
  await team(server, "web-team", [projects.shop]);
  await team(server, "everything", Object.values(projects));
}

interface Listed { findings: Array<{ id: number }> }

/** Decisions of the past: some ignored with both reasons, some under review, one with a note. */
async function decide(server: Server): Promise<void> {
  const path = "/api/v1/deployments/default/findings?dedup=true&page_size=100&repos=" + encodeURIComponent(projects.frontend);
  const ids = (await server.call<Listed>("GET", path)).findings.map(({ id }) => id);
  const triage = (from: number, to: number, more: object) =>
    server.call("POST", "/api/v1/deployments/default/triage", { issue_type: "sast", issue_ids: ids.slice(from, to), ...more });
  await triage(0, 12, { new_triage_state: "ignored", new_triage_reason: "false_positive", new_note: "Test code, never shipped." });
  await triage(12, 20, { new_triage_state: "ignored", new_triage_reason: "acceptable_risk" });
  await triage(20, 26, { new_triage_state: "reviewing" });
  await triage(26, 30, { new_triage_state: "fixing", new_note: "Planned for the next release." });
}

async function team(server: Server, name: string, names: readonly string[]): Promise<void> {
  const idOf = async (project: string) =>
    (await server.call<{ project: { id: number } }>("GET", `/api/v1/deployments/default/projects/${project}`)).project.id;
  const team = { name, repositoryIds: await Promise.all(names.map(idOf)) };
  await server.call("POST", "/api/permissions/v2/deployments/1/teams", { team }, await server.jwt());
}
