package main

import (
	"strings"
	"testing"
)

const closedScan = "semgrep ci --oss-only --no-suppress-errors"

// TestDoctorCIErrors: pipeline files whose job succeeds after an error of the scanner, and files whose job fails.
func TestDoctorCIErrors(t *testing.T) {
	step := func(lines ...string) string {
		return "jobs:\n  scan:\n    steps:\n      - run: |\n          " + strings.Join(lines, "\n          ") + "\n"
	}
	const github, gitlab, jenkins = ".github/workflows/palisade.yml", ".gitlab-ci.yml", "Jenkinsfile"
	for name, c := range map[string]struct{ file, content, status, want string }{
		"closed":              {github, step(closedScan), ciOK, github},
		"named":               {github, "steps:\n  - name: semgrep ci\n    run: " + closedScan + "\n", ciOK, ""},
		"two lines":           {github, step(`semgrep ci \`, "  --oss-only \\", "  --no-suppress-errors"), ciOK, ""},
		"container":           {github, step("docker run -e SEMGREP_APP_TOKEN semgrep/semgrep " + closedScan), ciOK, ""},
		"exit after it":       {github, step(closedScan + " || exit 1"), ciOK, ""},
		"steps after it":      {github, step(closedScan+" && echo done", "echo bye"), ciWarning, "exit status"},
		"step after it":       {github, step(closedScan + " && echo done"), ciOK, ""},
		"numbers as keys":     {github, "1: {run: " + closedScan + "}\n", ciOK, ""},
		"comment on variable": {github, step("semgrep ci --oss-only # SEMGREP_SUPPRESS_ERRORS=false"), ciFailed, "without --no-suppress-errors"},
		"GitLab":              {gitlab, "scan:\n  script:\n    - date\n    - " + closedScan + "\n", ciOK, ""},
		"GitLab's tags":       {gitlab, "scan:\n  script:\n    - !reference [.base, script]\n    - " + closedScan + "\n", ciOK, ""},
		"Jenkins":             {jenkins, "steps {\n  // semgrep ci\n  sh '" + closedScan + "'\n}\n", ciOK, ""},
		"other job may fail":  {github, "jobs:\n  lint: {continue-on-error: true, steps: [{run: lint}]}\n  scan: {steps: [{run: " + closedScan + "}]}\n", ciOK, ""},
		"set -e again":        {github, step("set +e", "lint", "set -e", closedScan), ciOK, ""},
		"anchors":             {gitlab, ".base: &base {image: semgrep/semgrep}\nscan:\n  <<: *base\n  script: [" + closedScan + "]\n", ciOK, ""},
		"flag after a pipe":   {github, step("set -o pipefail", "semgrep ci --oss-only | tee --no-suppress-errors"), ciFailed, "without --no-suppress-errors"},
		"no flag":             {github, step("semgrep ci --oss-only"), ciFailed, "an expired token or a dead server passes"},
		"flag elsewhere":      {github, step("semgrep ci --oss-only", closedScan+" --no-suppress-errors"), ciFailed, "without --no-suppress-errors"},
		"|| true":             {github, step(closedScan + " || true"), ciFailed, `"|| true"`},
		"|| echo":             {github, step(closedScan + " || echo failed"), ciFailed, `"|| echo failed"`},
		"; true":              {github, step(closedScan + " ; true"), ciFailed, `"; true"`},
		"; exit 0":            {github, step(closedScan + "; exit 0"), ciFailed, `"; exit 0"`},
		"|| true, next line":  {github, step(closedScan+" \\", "  || true"), ciFailed, `"|| true"`},
		"step continues":      {github, "jobs:\n  scan:\n    steps:\n      - continue-on-error: true\n        run: " + closedScan + "\n", ciFailed, "continue-on-error: true"},
		"job continues":       {github, "jobs:\n  scan:\n    continue-on-error: true\n    steps:\n      - run: " + closedScan + "\n", ciFailed, "continue-on-error: true"},
		"may continue":        {github, "jobs:\n  scan:\n    continue-on-error: ${{ matrix.x }}\n    steps:\n      - run: " + closedScan + "\n", ciWarning, "seems"},
		"may fail":            {gitlab, "scan:\n  allow_failure: true\n  script:\n    - " + closedScan + "\n", ciFailed, "allow_failure: true"},
		"may fail by anchor":  {gitlab, ".b: &b {allow_failure: true}\nscan:\n  <<: *b\n  script: [" + closedScan + "]\n", ciFailed, "allow_failure: true"},
		"may fail by rule":    {gitlab, "scan:\n  rules:\n    - {if: $CI, allow_failure: true}\n  script: [" + closedScan + "]\n", ciWarning, "allow_failure"},
		"some codes may fail": {gitlab, "scan:\n  allow_failure: {exit_codes: [2]}\n  script: [" + closedScan + "]\n", ciWarning, "seems"},
		"Azure":               {"azure-pipelines.yml", "steps:\n  - script: " + closedScan + "\n    continueOnError: true\n", ciFailed, "continueOnError: true"},
		"comment":             {github, step("semgrep ci --oss-only # without --no-suppress-errors"), ciFailed, "without --no-suppress-errors"},
		"comment of YAML":     {github, "steps:\n  - run: semgrep ci --oss-only # --no-suppress-errors\n", ciFailed, "without --no-suppress-errors"},
		"comment of Groovy":   {jenkins, "sh 'semgrep ci --oss-only' // --no-suppress-errors\n", ciFailed, "without --no-suppress-errors"},
		"later flag wins":     {github, step(closedScan + " --suppress-errors"), ciFailed, "--suppress-errors"},
		"dry run":             {github, step(closedScan + " --dry-run"), ciFailed, "--dry-run"},
		"audit":               {github, step(closedScan + " --audit-on pull_request"), ciWarning, "--audit-on"},
		"audit=":              {github, step(closedScan + " --audit-on=push"), ciWarning, "--audit-on"},
		"closed engine":       {github, step("semgrep ci --no-suppress-errors"), ciWarning, "without --oss-only"},
		"set +e":              {github, step("set +e", closedScan), ciWarning, "set +e"},
		"set +e in a list":    {gitlab, "scan:\n  script:\n    - set +e\n    - " + closedScan + "\n", ciWarning, "set +e"},
		"pipe":                {github, step(closedScan + " | tee log"), ciWarning, "pipefail"},
		"pipefail":            {github, step("set -o pipefail", closedScan+" | tee log"), ciOK, ""},
		"variable in file":    {gitlab, "variables: {SEMGREP_SUPPRESS_ERRORS: 'false'}\nscan: {script: [semgrep ci --oss-only]}\n", ciWarning, "seems to set SEMGREP_SUPPRESS_ERRORS"},
		"returnStatus":        {jenkins, "sh(script: '" + closedScan + "', returnStatus: true)\n", ciFailed, "returnStatus: true"},
		"catchError":          {jenkins, "catchError {\n  sh '" + closedScan + "'\n}\n", ciWarning, "catchError"},
		"not YAML":            {github, "{{ template }}:\n  - run: " + closedScan + " || true\n", ciFailed, `"|| true"`},
		"only printed":        {github, step("echo semgrep ci"), ciWarning, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, c.file, c.content)
			d := &ciDoctor{}
			d.checkErrors()
			if len(d.checks) != 1 || d.checks[0].Status != c.status || !strings.Contains(d.checks[0].Detail, c.want) {
				t.Errorf("%+v, want %s with %q, of\n%s", d.checks, c.status, c.want, c.content)
			}
		})
	}
}

// TestDoctorCIErrorsByVariable: the variable replaces the flag, and nothing else.
func TestDoctorCIErrorsByVariable(t *testing.T) {
	t.Chdir(t.TempDir())
	for content, want := range map[string]string{
		"script: [semgrep ci --oss-only]":                     ciOK,
		"script: [semgrep ci --oss-only --suppress-errors]":   ciFailed,
		"script: [semgrep ci --oss-only || true]":             ciFailed,
		"{allow_failure: true, script: [" + closedScan + "]}": ciFailed,
		"": ciOK,
	} {
		write(t, ".gitlab-ci.yml", content)
		d := &ciDoctor{std: streams{environ: []string{"SEMGREP_SUPPRESS_ERRORS=false"}}}
		d.checkErrors()
		if len(d.checks) != 1 || d.checks[0].Status != want {
			t.Errorf("%q: %+v, want %s", content, d.checks, want)
		}
	}
}
