package scans_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// noNew blocks what is new.
func noNew() *policiesv1.RemediationPolicy {
	return &policiesv1.RemediationPolicy{
		Slug: "no-new", Name: "No new", Active: true,
		Filters: &policiesv1.RemediationPolicyFilters{Mode: "all", Conditions: []*policiesv1.RemediationPolicyCondition{
			{Type: "finding_state", Values: []string{"new"}, Mode: "include"},
			{Type: "severity", Values: []string{"high"}, Mode: "include"},
		}},
		Actions: []*policiesv1.RemediationPolicyAction{{Type: "block"}},
	}
}

// base is the merge base of a diff scan.
func base(id string) func(object) {
	return with(strings.Repeat(id, 40), "project_metadata", "base_branch_head_commit")
}

// TestScannerNewIsNotOnTheBase: whether a finding is new depends on the base, not on how often the commit was
// scanned.
func TestScannerNewIsNotOnTheBase(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.block(t, noNew())
		only := func(lines ...float64) string { // high findings of lines 12 and 20
			return recorded(t, "results", with([]any{}, "ignores"), without(func(f object) bool {
				for _, line := range lines {
					if f["line"] == line {
						return true
					}
				}
				return false
			}))
		}
		blocks := func(what string, want int, results string, change ...func(object)) {
			t.Helper()
			_, answer := c.scan(t, results, change...)
			ids, _ := answer["app_blocking_match_based_ids"].([]any)
			if len(ids) != want || answer["app_block_override"] != (want > 0) {
				t.Errorf("%s: %v, want %d new", what, answer, want)
			}
		}
		blocks("first scan of a pull request whose base was never scanned", 1, only(20), pull, commit("b"), base("a"))
		blocks("first scan of main", 1, only(12), commit("a"))
		blocks("the same commit of main again", 1, only(12), commit("a"))
		blocks("the next commit of main", 0, only(12), commit("c"))
		blocks("pull request", 1, only(20), pull, commit("b"), base("a"))
		blocks("its job again", 1, only(20), pull, commit("b"), base("a"))
		blocks("its next commit", 1, only(20), pull, commit("d"), base("a"))
		blocks("what the base has", 0, only(12), pull, commit("e"), base("a"))
		blocks("the base is not known by its commit", 0, only(12), pull, commit("e"))
		blocks("fixed on main", 0, only(), commit("f"))
		blocks("not fixed at the merge base", 0, only(12), pull, commit("1"), base("c"))
		blocks("brought back by a pull request", 1, only(12), pull, commit("1"), base("f"))
		blocks("brought back on main", 1, only(12), commit("2"))
		blocks("the same commit again", 1, only(12), commit("2"))
		blocks("a branch is compared with main", 0, only(12), with("topic", "project_metadata", "branch"), commit("3"))
		blocks("and again", 1, only(12, 20), with("topic", "project_metadata", "branch"), commit("3"))
		blocks("main merges it", 1, only(12, 20), commit("4"))
		blocks("then it is not new", 0, only(20), pull, commit("d"))
	})
}

// TestUploadNewIsNotOnTheBase: uploads of pull requests are compared with the primary branch.
func TestUploadNewIsNotOnTheBase(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		newScanner(s).block(t, noNew())
		report := func(rules ...string) string {
			var results []string
			for _, rule := range rules {
				results = append(results, fmt.Sprintf(`{"ruleId":%q,"level":"error","message":{"text":"bad %s"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":3}}}]}`, rule, rule))
			}
			return `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":[` + strings.Join(results, ",") + `]}]}`
		}
		upload := func(ref, body, want string) {
			t.Helper()
			answer := s.Do(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/reports?project=acme/web&ref="+ref, body)
			if got := at(parsed(t, answer.Body), "block_reason"); answer.Status != 200 || fmt.Sprint(got) != want || (got != nil) != (at(parsed(t, answer.Body), "blocked") == true) {
				t.Errorf("%s: %d %v, want %s\n%s", ref, answer.Status, got, want, answer.Body)
			}
		}
		upload("main", report("a"), "policy No new: 1 finding")
		upload("main", report("a"), "<nil>") // without a commit, each upload is one of its own
		for range 2 {
			upload("refs/pull/7/merge", report("a", "b", "c"), "policy No new: 2 findings")
		}
		upload("refs/pull/7/merge", report("a"), "<nil>")
	})
}

// TestIgnoredFindingInRenamedFileDoesNotBlock: scanners recognise ignored findings by ids that depend on the path. So
// the server decides about rules with ignored findings.
func TestIgnoredFindingInRenamedFileDoesNotBlock(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		rule := "rules: [{id: acme.python.eval, languages: [python], severity: ERROR, message: Do not call eval, pattern: eval(...)}]"
		body := written(t, object{"files": []any{object{"name": "eval.yaml", "text": rule}}, "mode": "RULE_MODE_BLOCK"})
		if answer := s.Do(t, s.Token, http.MethodPost, fmt.Sprintf("/api/rules/v1/deployments/%d/rules", s.DeploymentID), body); answer.Status != 200 {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		one := without(func(f object) bool { return f["line"] == 12.0 })
		none := with([]any{}, "ignores")
		_, answer := c.scan(t, recorded(t, "results", one, none))
		if answer["app_block_override"] != false {
			t.Errorf("the scanner decides about rules without ignored findings: %v", answer)
		}
		first := s.Store.Reader.Finding.Query().OnlyX(s.System(t))
		triage := fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":"ignored","new_triage_reason":"false_positive"}`, first.ID)
		if answer := s.Do(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage", triage); answer.Status != 200 {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}

		id := c.create(t, commit("b"))
		config := c.ok(t, http.MethodPost, cliScans, recorded(t, "create_1.97", with(s.Store.Reader.Scan.GetX(s.System(t), id).UniqueID, "scan_metadata", "unique_id")))
		rules, _ := at(config, "config", "rules", "rules").([]any)
		if len(rules) != 1 || fmt.Sprint(at(rules[0], "metadata", "dev.semgrep.actions")) != "[]" || at(rules[0], "metadata", "semgrep.policy", "slug") != "rule-board-block" {
			t.Errorf("%v", rules)
		}
		moved := func(body object) {
			for _, f := range body["findings"].([]any) {
				f.(object)["path"], f.(object)["match_based_id"], f.(object)["syntactic_id"] = "app/moved.py", "f"+fmt.Sprint(f.(object)["match_based_id"])[1:], strings.Repeat("b", 32)
				f.(object)["is_blocking"] = false
			}
			body["searched_paths"], body["renamed_paths"] = []any{"app/moved.py"}, []any{"app/run.py"}
		}
		answer = c.complete(t, id, c.results(t, id, recorded(t, "results", one, none, moved)))
		wantList(t, "the decision follows the file", c.findingsOf(t, mainRef), "app/moved.py:12 unresolved ignored")
		if answer["app_block_override"] != false {
			t.Errorf("a renamed file with an ignored finding blocks: %v", answer)
		}
		_, answer = c.scan(t, recorded(t, "results", none, moved), commit("c"))
		ids, _ := answer["app_blocking_match_based_ids"].([]any)
		if answer["app_block_override"] != true || answer["app_block_reason"] != "rules in mode block: 1 finding" || len(ids) != 1 || !strings.HasSuffix(fmt.Sprint(ids[0]), "_1") {
			t.Errorf("another finding of the rule does not block: %v", answer)
		}
	})
}

// TestOlderScanStillBlocks: a scan of an older commit blocks for what it reported, although the finding has the
// content of the newer commit.
func TestOlderScanStillBlocks(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		policy := noNew()
		policy.Filters.Conditions = policy.Filters.Conditions[1:]
		c.block(t, policy)
		r := &situationRun{t: t, scannerClient: c, project: "acme/older", day: 1}
		old := r.begin(pull)
		r.diff(found("app/run.py:12 exec2").searching("app/run.py").with(movedFrom("exec")))
		if answer := r.end(old, found("app/run.py:12 exec").searching("app/run.py")); answer["app_block_override"] != true {
			t.Errorf("%v", answer)
		}
	})
}

// movedFrom gives findings the hash of other code, so that only their ids differ from it.
func movedFrom(code string) func(object) {
	return func(body object) {
		for _, f := range body["findings"].([]any) {
			f.(object)["hashes"] = object{"code_hash": digest(code), "pattern_hash": digest(code, "p")}
		}
	}
}

// TestCopiesOfIgnoredCodeBlock: a decision follows a renamed file, but it does not cover copies in a pull request.
func TestCopiesOfIgnoredCodeBlock(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.block(t, noNew())
		r := &situationRun{t: t, scannerClient: c, project: "acme/copies", day: 1}
		r.full(found(runEval))
		r.ignore("app/run.py:12")
		for what, test := range map[string]struct {
			results
			want bool
		}{
			"the same finding":              {found(runEval).searching("app/run.py"), false},
			"a second copy in the file":     {found("app/run.py:12 eval", "app/run.py:40 eval").searching("app/run.py"), true},
			"a copy in another file":        {found("app/copy.py:12 eval").searching("app/copy.py"), true},
			"the file was renamed":          {found("app/main.py:12 eval").searching("app/main.py").with(with([]any{"app/run.py"}, "renamed_paths")), false},
			"other code in the renamed one": {found("app/main.py:12 exec").searching("app/main.py").with(with([]any{"app/run.py"}, "renamed_paths")), true},
		} {
			branch := with("refs/heads/"+strings.ReplaceAll(what, " ", "-"), "project_metadata", "branch")
			if answer := r.diff(test.results, branch); answer["app_block_override"] != test.want {
				t.Errorf("%s: %v", what, answer)
			}
		}
	})
}

// TestScansThatAreNoBase: only a successful scan of all products on another ref says what a merge base has.
func TestScansThatAreNoBase(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.block(t, noNew())
		r := &situationRun{t: t, scannerClient: c, project: "acme/base", day: 1}
		r.full(found(runEval), commit("a"))
		r.full(found(runEval, runExec), commit("b"))
		r.full(found().searching(), commit("a"), with("topic", "project_metadata", "branch"), with([]any{"secrets"}, "scan_metadata", "requested_products"))
		r.full(found(runEval, oldHash), commit("c"), with("refs/pull/7/merge", "project_metadata", "branch"))
		s.Upload(t, "acme/base", "topic", []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":[]}]}`), "commit", strings.Repeat("a", 40))
		for _, test := range []struct {
			base, commit string
			found        string
			want         bool
		}{
			{"a", "d", runEval, false}, // as main had it, whatever other scans of that commit say
			{"a", "d", runExec, true},
			{"b", "d", runExec, false},
			{"c", "c", oldHash, true}, // a commit is no base of itself
			{"c", "d", oldHash, true}, // a scan of the same ref is no base
		} {
			answer := r.diff(found(test.found).searching("app/run.py", "lib/old.py"), commit(test.commit), base(test.base))
			if answer["app_block_override"] != test.want {
				t.Errorf("%+v: %v", test, answer)
			}
		}
	})
}
