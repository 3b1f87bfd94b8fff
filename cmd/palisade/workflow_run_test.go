package main

import (
	"strings"
	"testing"
)

const runnableWorkflow = `name: greeting
targetType: deployment
inputs:
- {name: who, type: string, required: true}
- {name: times, type: integer, default: 1}
- {name: fail, type: boolean, default: false}
steps:
- {name: begin, next: [choose]}
- {name: choose, type: switch, condition: inputs.fail, cases: {"true": bad, default: good}}
- {name: bad, with: {output: "${{ inputs.nothing }}"}, next: [end]}
- {name: good, next: [end]}
- {name: end, with: {output: "${{ lists.range(inputs.times).map(i, inputs.who) }}"}}
`

// TestWorkflowRunCommands starts a run, follows it, lists runs, retries and cancels.
func TestWorkflowRunCommands(t *testing.T) {
	client := startReadyServer(t, t.TempDir())
	must := func(status int, args ...string) outcome {
		t.Helper()
		got := palisade(t, "", client, append([]string{"workflow"}, args...)...)
		if got.status != status {
			t.Fatalf("%v: status %d, want %d: %s%s", args, got.status, status, got.out, got.err)
		}
		return got
	}
	definition := strings.Replace(runnableWorkflow, "inputs.nothing", "inputs.who.size() / (inputs.times - inputs.times)", 1)
	must(exitOK, "publish", writeFile(t, "greeting.yaml", definition), writeFile(t, "outside.yaml",
		"name: outside\ntargetType: deployment\nsteps:\n- {name: wait, uses: external, next: [end]}\n- {name: end}\n"))

	run := must(exitOK, "run", "greeting", "--input", "who=3", "-i", "times=2", "--name", "first", "--wait")
	if run.out != "job 1 of greeting: completed\n" {
		t.Errorf("printed: %q", run.out)
	}
	wantParts(t, run.err, "job 1 of greeting: submitted", "  begin: succeeded", "  bad: skipped", "  end: succeeded")
	failed := must(exitNo, "run", "greeting", "--input", "who=you", "--input", "fail=true", "--wait", "-o", "json")
	wantParts(t, failed.out, `"status":"PLATFORM_WORKFLOW_RUN_STATUS_FAILED"`)
	wantParts(t, failed.err, "bad: failed", "division by zero")

	wantParts(t, must(exitOK, "jobs").out, "JOB", "greeting", "completed", "failed")
	if got := must(exitOK, "jobs", "--status", "failed", "-o", "json").out; strings.Count(got, `"jobId"`) != 1 {
		t.Errorf("failed ones: %s", got)
	}
	more := must(exitMore, "jobs", "--limit", "1")
	wantParts(t, more.err, "There are more than 1: raise --limit")
	wantParts(t, must(exitNo, "retry", "2", "--wait").out, "job 3 of greeting: failed: step bad failed: ", "division by zero")

	if got := must(exitOK, "run", "outside", "--idempotency-key", "k").out; got != "job 4 of outside: submitted\n" {
		t.Errorf("printed: %q", got)
	}
	wantParts(t, must(exitOK, "run", "outside", "--idempotency-key", "k", "-o", "json").out, `{"summary":{"jobId":"4"`)
	if got := must(exitOK, "cancel", "4").out; got != "job 4 of outside: cancelled\n" {
		t.Errorf("printed: %q", got)
	}
	refusals(t, client)
}

func refusals(t *testing.T, client []string) {
	t.Helper()
	for _, c := range []struct {
		args, want string
	}{
		{"run nothing", `workflow "nothing" not found`},
		{"run greeting", "missing property 'who'"},
		{"run greeting -i who", `want NAME=VALUE`},
		{"run greeting -i times=many", "want JSON, as the input is of type integer"},
		{"run greeting -i who=x --repo acme/none", "not found"},
		{"run code-audit", "repoId is required"},
		{"cancel 1", "job 1 has ended: it is completed"},
		{"retry 99", "not found"},
		{"jobs --status done", "--status"},
		{"jobs --limit 0", "limit"},
		{"run", "needs the name of a workflow"},
		{"cancel", "needs the id of a run"},
		{"retry 1 2", `takes one id, got "2"`},
	} {
		got := palisade(t, "", client, append([]string{"workflow"}, strings.Fields(c.args)...)...)
		if got.status != exitError {
			t.Errorf("%s: status %d", c.args, got.status)
		}
		wantParts(t, got.err, c.want)
	}
}
