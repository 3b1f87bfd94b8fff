package scans_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scans/blocking"
)

// TestPoliciesTellWhatTheGateCounts: after scans of a scanner, a policy sends a message about the findings for which
// its gate fails the scan, once, and not about findings of monitored rules.
func TestPoliciesTellWhatTheGateCounts(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.ok(t, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/actions", s.DeploymentID), `{"notificationRule":{"name":"hook",
			"channel":"webhook","is_enabled":true,"send_findings":false,"config":{"url":"https://hooks.acme.test/in","secret":"acme-hook-secret-1"}}}`)
		tell := `"active":true,"actions":[{"type":"notify","config":{"notification_rule_id":"1"}},{"type":"block"}]}`
		policies := fmt.Sprintf("/api/policies/v2/deployments/%d/remediation-policies", s.DeploymentID)
		s.Body(t, s.Token, http.MethodPut, policies, `{"bundle":{"policies":[
			{"name":"New","filters":{"mode":"all","conditions":[{"type":"finding_state","values":["new"]},{"type":"severity","values":["high"]}]},`+tell+`,
			{"name":"All","filters":{"mode":"all"},`+tell+`]}}`, 200, "If-Match", "*")
		runs := func(slug string) (matched []string) {
			t.Helper()
			var list struct{ Runs []struct{ Matched string } }
			if err := json.Unmarshal([]byte(s.Get(t, policies+"/"+slug+"/runs")), &list); err != nil {
				t.Fatal(err)
			}
			for _, run := range list.Runs {
				matched = append(matched, run.Matched)
			}
			return matched
		}
		only := func(lines ...float64) string {
			return recorded(t, "results", with([]any{}, "ignores"), without(func(f object) bool {
				for _, line := range lines {
					if f["line"] == line {
						return true
					}
				}
				return false
			}))
		}
		scan := func(what string, want []string, results string, change ...func(object)) {
			t.Helper()
			c.scan(t, results, change...)
			awaitAutomations(t, s)
			if got := runs("new"); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: the runs matched %v, want %v", what, got, want)
			}
		}
		scan("main", []string{"1"}, only(12), commit("a"))
		counted := 0
		for _, f := range s.Store.Reader.Finding.Query().AllX(s.System(t)) {
			if blocking.Counts(f, false) && f.State == "unresolved" {
				counted++
			}
		}
		if got := runs("all"); counted == 0 || len(got) != 1 || got[0] != fmt.Sprint(counted) {
			t.Errorf("the policy about everything matched %v of %d", got, counted)
		}
		scan("the same commit", []string{"1"}, only(12), commit("a"))
		scan("a pull request with another finding", []string{"1", "1"}, only(12, 20), pull, commit("b"), base("a"))
		scan("its job again", []string{"1", "1"}, only(12, 20), pull, commit("b"), base("a"))
		scan("merged", []string{"1", "1"}, only(12, 20), commit("c"))
		scan("fixed", []string{"1", "1"}, only(20), commit("d"))
		scan("brought back", []string{"1", "1", "1"}, only(12, 20), commit("e"))

		// An uploaded report of the same tool has no modes of rules: all of it counts, also once a day.
		before := len(runs("all"))
		s.Upload(t, "acme/uploaded", "main", sarifOf(t, run{Tool: "Semgrep OSS", Results: []result{{Rule: "acme.eval", Level: "error", File: "a.py", Code: "eval(x)", Line: 1}}}))
		awaitAutomations(t, s)
		if got := runs("all"); len(got) != before+1 || got[0] != "1" {
			t.Errorf("after an upload the runs matched %v", got)
		}
	})
}

// awaitAutomations waits until no job of automations or policies waits or runs.
func awaitAutomations(t testing.TB, s *apitest.Server) {
	t.Helper()
	reader, _ := s.Store.DB()
	apitest.Eventually(t, "the automations end", func() bool {
		var left int
		err := reader.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM river_job WHERE queue IN ('automations', 'policies') AND state NOT IN ('completed', 'cancelled')`).Scan(&left)
		if err != nil {
			t.Fatal(err)
		}
		return left == 0
	})
}
