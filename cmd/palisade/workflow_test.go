package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	goodWorkflow = "name: nightly\ndisplayName: Every night\ninputs:\n- {name: depth, type: integer, default: 3, description: How deep.}\n- {name: branch, type: string, required: true}\nsteps:\n- {name: begin, next: [end]}\n- {name: end}\n"
	badWorkflow  = "name: nightly\nsteps:\n- {name: begin, type: split, next: [a, b], matchingJoin: end}\n- {name: a, uses: lm, next: [end]}\n- {name: b, next: [end]}\n- {name: end}\n"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWorkflowCommands lints, publishes, shows, changes and deletes a workflow.
func TestWorkflowCommands(t *testing.T) {
	client, good, bad := startReadyServer(t, t.TempDir()), writeFile(t, "good.yaml", goodWorkflow), writeFile(t, "bad.yaml", badWorkflow)
	must := func(args ...string) outcome {
		t.Helper()
		got := palisade(t, "", client, append([]string{"workflow"}, args...)...)
		if got.status != exitOK {
			t.Fatalf("%v: status %d: %s", args, got.status, got.err)
		}
		return got
	}
	wantParts(t, must("list").out, "NAME", "code-audit", "triage-backlog", "disabled", "repository", "Audit the code", "LACKS", "no model is configured")
	if got := must("publish", good, good).out; got != "nightly: version 1, enabled\nnightly: version 1, enabled\n" {
		t.Errorf("published: %q", got)
	}
	if got := palisade(t, goodWorkflow+"# more\n", client, "workflow", "publish", "-"); got.out != "nightly: version 2, enabled\n" {
		t.Errorf("from standard input: %d %q %s", got.status, got.out, got.err)
	}
	refused := palisade(t, "", client, "workflow", "publish", bad)
	if refused.status != exitError || refused.out != "" {
		t.Errorf("a bad one: status %d, %q", refused.status, refused.out)
	}
	wantParts(t, refused.err, "bad.yaml: definition: line 3: step begin: matchingJoin names step end", "line 4: step a: uses must be one of", "HTTP 400")

	wantParts(t, must("show", "nightly").out, "nightly (Every night), version 2, enabled, works on a repository", "begin", "linear", "depth", "integer", "3",
		"How deep.", "branch", "(required)", "2 (current)", "1 ", "bootstrap")
	if got := must("show", "nightly", "--definition").out; got != goodWorkflow+"# more\n" {
		t.Errorf("definition: %q", got)
	}
	var shown struct {
		Workflow struct {
			Inputs struct{ JSONSchema map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(must("show", "nightly", "-o", "json").out), &shown); err != nil || shown.Workflow.Inputs.JSONSchema["type"] != "object" {
		t.Errorf("%v: %+v", err, shown)
	}
	if got := must("disable", "nightly", "code-audit").out; got != "nightly: version 2, disabled (workflow nightly is disabled: an administrator can enable it)\n"+
		"code-audit: version 1, disabled (workflow code-audit is disabled: an administrator can enable it; no source-code host is connected, so no code can be read: connect one; no model is configured: set ai-url and ai-model (and ai-key where the API needs one) and start the server again)\n" {
		t.Errorf("disabled: %q", got)
	}
	wantParts(t, must("enable", "nightly", "--deployment", "default").out, "nightly: version 2, enabled")
	if got := must("delete", "nightly").out; got != "nightly: deleted\n" {
		t.Errorf("deleted: %q", got)
	}
	if got := must("list", "-o", "json").out; strings.Contains(got, "nightly") || !strings.HasPrefix(got, `{"workflows":[{"name":"code-audit"`) {
		t.Errorf("list: %.200s", got)
	}
	for _, args := range [][]string{{"show", "nightly"}, {"delete", "nightly"}, {"enable", "nightly"}} {
		got := palisade(t, "", client, append([]string{"workflow"}, args...)...)
		if got.status != exitError {
			t.Errorf("%v: status %d", args, got.status)
		}
		wantParts(t, got.err, `workflow "nightly" not found`, "HTTP 404")
	}
	wantParts(t, palisade(t, "", client, "workflow", "list", "--deployment", "other").err, `no access to a deployment "other"`)

	online := palisade(t, "", client, "workflow", "lint", "--online", bad)
	if offline := palisade(t, "", nil, "workflow", "lint", bad); online.status != exitNo || online.out != offline.out {
		t.Errorf("the server says %d\n%s\nand the program %d\n%s", online.status, online.out, offline.status, offline.out)
	}
}

func TestWorkflowLintNeedsNoServer(t *testing.T) {
	good, bad := writeFile(t, "good.yaml", goodWorkflow), writeFile(t, "bad.yaml", badWorkflow)
	if got := palisade(t, "", nil, "workflow", "lint", good); got.status != exitOK || got.out != "" || got.err != "No problems.\n" {
		t.Errorf("%+v", got)
	}
	got := palisade(t, "", nil, "workflow", "lint", good, bad)
	if got.status != exitNo || got.err != "" {
		t.Errorf("status %d, %q", got.status, got.err)
	}
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	wantParts(t, lines[0], bad+":3: step begin: matchingJoin names step end, which is a linear, not a join")
	wantParts(t, got.out, bad+":4: step a: uses must be one of code.fetch, external,")
	asJSON := palisade(t, badWorkflow, nil, "workflow", "lint", "-", "-o", "json")
	var answer struct {
		Problems []struct {
			File, Step, Text string
			Line             int
		}
	}
	if err := json.Unmarshal([]byte(asJSON.out), &answer); err != nil || asJSON.status != exitNo || len(answer.Problems) != len(lines) ||
		answer.Problems[0].Line != 3 || answer.Problems[0].Step != "begin" || answer.Problems[0].File != "-" {
		t.Errorf("%v: %d %s", err, asJSON.status, asJSON.out)
	}
	if got := palisade(t, goodWorkflow, nil, "workflow", "lint", "-", "-o", "json"); got.out != `{"problems":[]}`+"\n" || got.status != exitOK {
		t.Errorf("%+v", got)
	}
	if got := palisade(t, "", nil, "workflow", "lint", "no/such.yaml"); got.status != exitError {
		t.Errorf("status %d", got.status)
	}
}

func TestWorkflowUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"workflow", "make"}, []string{`unknown command "make"`, "palisade workflow --help"}},
		{[]string{"workflow", "lint"}, []string{"at least one file", "palisade workflow lint --help"}},
		{[]string{"workflow", "publish", "-", "-"}, []string{"only once"}},
		{[]string{"workflow", "show"}, []string{"needs the name of a workflow", "palisade workflow list"}},
		{[]string{"workflow", "show", "a", "b"}, []string{`takes one name, got "b"`}},
		{[]string{"workflow", "show", "a", "--definition", "-o", "json"}, []string{"definition", "output"}},
		{[]string{"workflow", "list", "-o", "csv"}, []string{`--output: got "csv", want table, json`}},
		{[]string{"workflow", "list"}, []string{"PALISADE_TOKEN"}},
		{[]string{"workflow", "disable"}, []string{"needs the name of a workflow"}},
	} {
		got := palisade(t, "", nil, c.args...)
		if got.status != exitError || got.out != "" {
			t.Errorf("%v: status %d, %q", c.args, got.status, got.out)
		}
		wantParts(t, got.err, c.want...)
	}
	for _, command := range []string{"list", "show", "lint", "publish", "enable", "disable", "delete"} {
		wantParts(t, palisade(t, "", nil, "workflow", command, "--help").out, "Examples:", "palisade workflow "+command)
	}
	wantParts(t, palisade(t, "", nil, "workflow").out, "lint", "publish", "docs/workflows.md")
}
