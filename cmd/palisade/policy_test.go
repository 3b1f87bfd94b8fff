package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestPolicyCommands(t *testing.T) {
	client := startReadyServer(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "policies.yaml")
	expect := func(status int, stdin string, args ...string) outcome {
		t.Helper()
		got := palisade(t, stdin, client, append([]string{"policy"}, args...)...)
		if got.status != status {
			t.Fatalf("%v: status %d: %s%s", args, got.status, got.out, got.err)
		}
		return got
	}
	expect(exitOK, "", "pull", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wantParts(t, string(text), "policies:", "supply-chain:", "remediation:", "versions:", "- default")
	wantParts(t, expect(exitOK, "", "diff", file).out, "no changes")
	wantParts(t, expect(exitOK, "", "apply", file).out, "no changes")

	changed := strings.Replace(string(text), "disabled: []", "disabled: [palisade.kotlin.weak-hash]", 1)
	wantParts(t, expect(exitChanges, changed, "diff", "-").out, "~ code", "stop: 1, open findings: 0", "weak-hash")
	wantParts(t, expect(exitChanges, changed, "apply", "-", "--dry-run").out, "~ code")
	wantParts(t, expect(exitOK, changed, "apply", "-").out, "1 change applied")
	wantParts(t, expect(exitOK, changed, "apply", "-").out, "no changes")
	// Another reconciler has changed the policies since the pull.
	wantParts(t, expect(exitError, string(text), "apply", "-").err, "after the file was pulled (code)", "nothing is applied")
	// Nothing of a file is applied if a later section is stale.
	half := "policies: {code: {rulesets: [starter]}, remediation: {policies: [{name: A, filters: {mode: all}, actions: [{type: block}]}]}}\nversions: {remediation: old}"
	for _, args := range [][]string{{"apply", "-"}, {"apply", "-", "--dry-run"}, {"diff", "-"}} {
		wantParts(t, expect(exitError, half, args...).err, "after the file was pulled (remediation)")
	}
	if got := expect(exitOK, "", "pull", "-").out; strings.Contains(got, "starter") {
		t.Error("half a file was applied")
	}
	wantParts(t, expect(exitOK, "", "pull", "-", "--no-versions").out, "weak-hash")

	// A policy that blocks everything.
	wantParts(t, expect(exitOK, "", "back-test").out, "0 scans, 0 findings", "nothing would have happened", "note: ")
	block := "policies: {remediation: {policies: [{name: All, active: true, filters: {mode: all}, actions: [{type: block}]}]}}"
	wantParts(t, expect(exitChanges, block, "diff", "-").err, `warning: policy "all" fails every scan`)
	wantParts(t, expect(exitChanges, block, "apply", "-", "--dry-run").err, "warning: ")
	tested := expect(exitOK, block, "back-test", "-", "--days", "7", "--json")
	wantParts(t, tested.out, `"slug":"all"`, `"scans":0`)
	wantParts(t, tested.err, "replaying 7 days…", `warning: policy "all" fails every scan`)
	report := `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":[{"ruleId":"a","level":"error","message":{"text":"bad"},
		"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":3}}}]}]}]}`
	if got := palisade(t, report, client, "upload", "-", "--project", "acme/web", "--ref", "main"); got.status != exitOK {
		t.Fatal(got.err)
	}
	wantParts(t, expect(exitChanges, block, "back-test", "-").out, "1 scan, 1 finding", "POLICY", "all", "acme/web", "RULE", "block")
	wantParts(t, expect(exitError, strings.Replace(block, "block", "shout", 1), "back-test", "-").err, "UNSUPPORTED_ACTION_TYPE", "shout")
	wantParts(t, expect(exitError, "", "back-test", "--days", "366").err, "days must")
	wantParts(t, expect(exitError, "", "back-test", "--days", "0").err, "at least 1")
	wantParts(t, expect(exitError, "policies: {code: {}}", "back-test", "-").err, "no section remediation")
	expect(exitError, "", "back-test", "one", "two")

	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
		"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\npolicies: {code: *f}\n"
	for stdin, text := range map[string]string{
		bomb: "excessive aliasing", "": "no policies", "a: [": "neither YAML nor JSON", "policies: {sast: {}}": "there is no section",
		"policy: {}":                        "unknown field",
		"policies: {code: {rulesett: [a]}}": "rulesett",
		"policies: {remediation: {policies: [{name: a, filters: {mode: all, condtions: []}, actions: []}]}}": "condtions",
		"policies: {code: {}}\nversions: {cod: x}":                                                           `versions: there is no section "cod"`,
		"policies: {code: {}}\n---\npolicies: {secrets: {}}":                                                 "more than one document",
		`{"policies": {"code": {}}} {"policies": {}}`:                                                        "file",
		"policies: {code: {rules: [acme.x]}}":                                                                "UNKNOWN_REFERENCE",
		strings.Repeat("#", maxPolicyFile+100):                                                               "more than",
	} {
		wantParts(t, expect(exitError, stdin, "diff", "-").err, text)
	}
	expect(exitError, "", "diff")
}

// TestPolicyReconcilersDoNotMix: of two that apply different files at once, one fails, or the server has all of one
// file.
func TestPolicyReconcilersDoNotMix(t *testing.T) {
	client := startReadyServer(t, t.TempDir())
	file := func(mode, slug string) string {
		return "policies: {code: {rulesets: [" + mode + "]}, remediation: {policies: [{name: " + slug + ", filters: {mode: all}, actions: [{type: block}]}]}}"
	}
	files := []string{file("starter", "first"), file("publish", "second")}
	for round := range 12 {
		var group sync.WaitGroup
		got := make([]outcome, 2)
		for i := range files {
			group.Go(func() { got[i] = palisade(t, files[i], client, "policy", "apply", "-") })
		}
		group.Wait()
		state := palisade(t, "", client, "policy", "pull", "-").out
		first := strings.Contains(state, "- starter")
		if got[0].status == exitOK && got[1].status == exitOK && first != strings.Contains(state, "name: first") {
			t.Errorf("round %d: both succeeded, and the server has a mixture:\n%s", round, state)
		}
	}
}

// TestPolicyOfPartOfTheProjects: a token that does not see all projects compares files, but writes none by accident,
// and applies nothing.
func TestPolicyOfPartOfTheProjects(t *testing.T) {
	dir := t.TempDir()
	admin := startReadyServer(t, dir)
	server := strings.TrimPrefix(admin[0], "PALISADE_URL=")
	report := `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":[]}]}`
	for _, project := range []string{"acme/web", "acme/api"} {
		if got := palisade(t, report, admin, "upload", "-", "--project", project, "--ref", "main"); got.status != exitOK {
			t.Fatal(got.err)
		}
	}
	(&ciJob{server: server}).api(t, http.MethodPost, "/api/permissions/v2/deployments/1/teams", `{"team":{"name":"Web"}}`)
	made := palisade(t, "", []string{"PALISADE_DATA=" + dir}, "token", "create", "--name", "reader", "--scopes", "web-api")
	if made.status != exitOK {
		t.Fatal(made.err)
	}
	limited := []string{admin[0], "PALISADE_TOKEN=" + strings.TrimSpace(made.out)}
	expect := func(who []string, status int, stdin string, args ...string) outcome {
		t.Helper()
		got := palisade(t, stdin, who, append([]string{"policy"}, args...)...)
		if got.status != status {
			t.Fatalf("%v: status %d: %s%s", args, got.status, got.out, got.err)
		}
		return got
	}
	whole := `policies: {code: {rulesets: [default], exceptions: [{exception_type: exclude, project: acme/web, rule: starter, rule_type: ruleset}]},
		remediation: {policies: [{name: No secrets, active: true, actions: [{type: block}], filters: {mode: all, conditions: [
		{type: product, values: [secrets]}, {type: project, values: [acme/api]}]}}]}}`
	expect(admin, exitOK, whole, "apply", "-")
	file := filepath.Join(t.TempDir(), "part.yaml")
	wantParts(t, expect(limited, exitError, "", "pull", file).err, "does not see all projects", "--partial")
	if _, err := os.Stat(file); err == nil {
		t.Error("the refused pull wrote a file")
	}
	expect(limited, exitOK, "", "pull", file, "--partial")
	part, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wantParts(t, string(part), "partial: true")
	if strings.Contains(string(part), "acme/") {
		t.Errorf("the file names hidden projects: %s", part)
	}
	for _, stdin := range []string{string(part), whole} {
		got := expect(limited, exitOK, stdin, "diff", "-")
		wantParts(t, got.out, "no changes in what the token sees")
		if strings.Count(got.err, "you do not see all projects") != 1 {
			t.Errorf("got %s", got.err)
		}
		expect(limited, exitOK, stdin, "back-test", "-")
	}
	wantParts(t, expect(limited, exitError, whole, "apply", "-").err, "it cannot apply", "nothing is applied")
	wantParts(t, expect(admin, exitError, string(part), "apply", "-").err, "partial: true", "nothing is applied")
	wantParts(t, expect(admin, exitError, string(part), "diff", "-").err, "does not see all projects")
	wantParts(t, expect(admin, exitOK, whole, "diff", "-").out, "no changes")
}
