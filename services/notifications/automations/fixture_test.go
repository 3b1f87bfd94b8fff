package automations_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/automationrun"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/internal/apitest"
)

// caller sends requests as the administrator.
type caller struct{ *apitest.Server }

func each(t *testing.T, test func(t *testing.T, s caller)) {
	t.Helper()
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) { test(t, caller{s}) })
}

func (c caller) path(more string) string {
	return fmt.Sprintf("/api/notifications/deployments/%d/automations%s", c.DeploymentID, more)
}

// create creates an automation and returns its id.
func (c caller) create(t testing.TB, automation string) string {
	t.Helper()
	var made struct{ Automation struct{ ID string } }
	decode(t, c.Body(t, c.Token, http.MethodPost, c.path(""), `{"automation":`+automation+`}`, 200), &made)
	return made.Automation.ID
}

// refused returns the error of an automation that is not accepted.
func (c caller) refused(t testing.TB, automation string, want int) string {
	t.Helper()
	return c.Body(t, c.Token, http.MethodPost, c.path(""), `{"automation":`+automation+`}`, want)
}

func decode(t testing.TB, body string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
}

// run is an entry of the run log.
type run struct {
	ScanID, TriageChangeID string
	Evaluated, Matched     string
	Outcomes               []struct {
		Type   string
		Acted  bool
		Detail string
	}
}

func (c caller) runs(t testing.TB, id string) []run {
	t.Helper()
	var list struct{ Runs []run }
	decode(t, c.Get(t, c.path("/"+id+"/runs")), &list)
	return list.Runs
}

// await waits until the automation has run n times.
func (c caller) await(t testing.TB, id string, n int) []run {
	t.Helper()
	apitest.Eventually(t, fmt.Sprintf("automation %s runs %d times", id, n), func() bool { return len(c.runs(t, id)) >= n })
	return c.runs(t, id)
}

// report is a SARIF report with one result per word: "LEVEL:FILE".
func report(results ...string) []byte {
	var list []string
	for _, word := range results {
		level, file, _ := strings.Cut(word, ":")
		list = append(list, fmt.Sprintf(`{"ruleId":"acme.%s","level":%q,"message":{"text":"about %s"},"locations":[{"physicalLocation":{
			"artifactLocation":{"uri":%q},"region":{"startLine":3,"snippet":{"text":"call(%s)"}}}}]}`, level, level, file, file, file))
	}
	return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"Acme Scan","rules":[
		{"id":"acme.error","properties":{"cwe":["CWE-79: Cross-site scripting"]}},{"id":"acme.warning"}]}},"results":[` + strings.Join(list, ",") + `]}]}`)
}

// states are the triage states by path, on one ref.
func (c caller) states(t testing.TB, ref string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, f := range c.Store.Reader.Finding.Query().Where(finding.Ref("refs/heads/" + ref)).AllX(c.System(t)) {
		out[*f.FilePath] = f.TriageState
	}
	return out
}

func (c caller) logged(t testing.TB) []*ent.AutomationRun {
	t.Helper()
	return c.Store.Reader.AutomationRun.Query().Order(automationrun.ByID()).AllX(c.System(t))
}

// rule creates a notification rule that sends nothing by itself, and returns its id.
func (c caller) rule(t testing.TB) string {
	t.Helper()
	var made struct {
		Rule struct{ ID int64 } `json:"notification_rule"`
	}
	decode(t, c.Body(t, c.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/actions", c.DeploymentID), `{"notificationRule":{"name":"hook",
		"channel":"webhook","is_enabled":true,"send_findings":false,"config":{"url":"https://hooks.acme.test/in","secret":"acme-hook-secret-1"}}}`, 200), &made)
	return strconv.FormatInt(made.Rule.ID, 10)
}

// ownWorkflow needs no model.
const ownWorkflow = `
name: tidy
targetType: repository
steps:
  - {name: start, with: {output: "${{ lists.range(3) }}"}, next: [end]}
  - {name: end, with: {output: "${{ steps.start.output }}"}}
`
