package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// ciPages have snippets that people copy into pipelines.
var ciPages = []string{"../../README.md", "../../docs/ci.md", "../../docs/scanners.md"}

var (
	fence   = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")
	command = regexp.MustCompile(`semgrep ci --[^\n\x60\]]*`)
)

// snippets returns the blocks of a page in a language.
func snippets(t *testing.T, page, language string) (list []string) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range fence.FindAllStringSubmatch(string(content), -1) {
		if block[1] == language {
			list = append(list, block[2])
		}
	}
	return list
}

// TestSnippetsHoldTheGate: every command in the documentation fails a job when the scanner fails, and every snippet for
// a pipeline parses and fetches the history that a pull request is compared with.
func TestSnippetsHoldTheGate(t *testing.T) {
	scans := 0
	for _, page := range ciPages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range command.FindAllString(string(content), -1) {
			if !strings.Contains(line, failClosed) || !strings.Contains(line, "--oss-only") {
				t.Errorf("%s: %s", page, line)
			}
		}
		for _, snippet := range snippets(t, page, "yaml") {
			var parsed any
			if err := yaml.Unmarshal([]byte(snippet), &parsed); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, snippet)
			}
			if !strings.Contains(snippet, scanCommand) {
				continue
			}
			scans++
			if !strings.Contains(snippet, "fetch-depth: 0") && !strings.Contains(snippet, "GIT_DEPTH: 0") || strings.Contains(snippet, "pull_request_target") {
				t.Errorf("%s: a pull request is not compared with its merge base:\n%s", page, snippet)
			}
			if !strings.Contains(snippet, `SEMGREP_ENABLE_VERSION_CHECK: "0"`) || !strings.Contains(snippet, ": semgrep/semgrep") {
				t.Errorf("%s: no scanner, or one that calls its vendor:\n%s", page, snippet)
			}
		}
	}
	if scans < 4 {
		t.Errorf("only %d snippets were checked", scans)
	}
}

// TestSnippetsPassTheDoctor: the complete files of docs/ci.md are what doctor --ci wants to see.
func TestSnippetsPassTheDoctor(t *testing.T) {
	files := snippets(t, "../../docs/ci.md", "yaml")
	if len(files) != 2 || !strings.Contains(files[0], "permissions: {contents: read}") || !strings.Contains(files[1], "merge_request_event") {
		t.Fatalf("%d snippets", len(files))
	}
	t.Chdir(t.TempDir())
	write(t, ".github/workflows/palisade.yml", files[0])
	write(t, ".gitlab-ci.yml", files[1])
	d := &ciDoctor{}
	d.checkErrors()
	if len(d.checks) != 1 || d.checks[0].Status != ciOK || !strings.Contains(d.checks[0].Detail, "palisade.yml, .gitlab-ci.yml") {
		t.Errorf("%+v", d.checks)
	}
}
