import * as texts from "@/texts";

export type Way = "ci" | "github" | "gitlab" | "curl" | "cli";
export const ways: Way[] = ["ci", "github", "gitlab", "curl", "cli"];

/** What a snippet is about. */
export interface Target {
  /** Address of this server. */
  server: string;
  /** Slug of the organization. */
  org: string;
  /** The token, or a placeholder. */
  token: string;
}

export interface Snippet {
  /** Where it goes: a file, or a shell. */
  file?: string;
  /** Name of the secret of the CI system; the token is not in the snippet. */
  secret?: string;
  text: string;
}

/** A word that a shell reads as it is. */
export const quoted = (word: string): string => (/^[\w./:@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

const writers: Record<Way, (target: Target) => Snippet> = {
  ci: ({ server, token }) => ({
    text: `export SEMGREP_URL=${quoted(server)}
export SEMGREP_APP_TOKEN=${quoted(token)}
export SEMGREP_ENABLE_VERSION_CHECK=0 SEMGREP_SEND_METRICS=off
semgrep ci --oss-only --no-suppress-errors`,
  }),
  github: ({ server }) => ({
    file: ".github/workflows/palisade.yml",
    secret: "PALISADE_TOKEN",
    text: `name: palisade
on:
  push: {branches: [main]}
  pull_request: {}
permissions: {contents: read}
jobs:
  scan:
    runs-on: ubuntu-latest
    container: semgrep/semgrep
    env:
      SEMGREP_URL: ${JSON.stringify(server)}
      SEMGREP_APP_TOKEN: \${{ secrets.PALISADE_TOKEN }}
      SEMGREP_ENABLE_VERSION_CHECK: "0"
      SEMGREP_SEND_METRICS: "off"
    steps:
      - uses: actions/checkout@v4
        with: {fetch-depth: 0}
      - run: git config --global --add safe.directory "$GITHUB_WORKSPACE"
      - run: semgrep ci --oss-only --no-suppress-errors`,
  }),
  gitlab: ({ server }) => ({
    file: ".gitlab-ci.yml",
    secret: "SEMGREP_APP_TOKEN",
    text: `palisade:
  image: semgrep/semgrep
  variables:
    SEMGREP_URL: ${JSON.stringify(server)}
    SEMGREP_ENABLE_VERSION_CHECK: "0"
    SEMGREP_SEND_METRICS: "off"
    GIT_DEPTH: 0
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
  script:
    - semgrep ci --oss-only --no-suppress-errors`,
  }),
  curl: ({ server, org, token }) => ({
    text: `curl --fail-with-body -H ${quoted(`Authorization: Bearer ${token}`)} \\
  -H 'Content-Type: application/sarif+json' --data-binary @report.sarif \\
  ${quoted(`${server}/api/v1/deployments/${org}/reports?project=${encodeURIComponent(texts.setup.upload.projectDefault)}&ref=main`)}`,
  }),
  cli: ({ server, org, token }) => ({
    text: `export PALISADE_URL=${quoted(server)} PALISADE_TOKEN=${quoted(token)}
palisade upload --deployment ${quoted(org)} --project ${quoted(texts.setup.upload.projectDefault)} --ref main report.sarif`,
  }),
};

export const snippetOf = (way: Way, target: Target): Snippet => writers[way](target);
