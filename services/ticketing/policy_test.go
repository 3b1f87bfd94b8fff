package ticketing_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// TestTicketsOfPolicies: a remediation policy with the action ticket creates a ticket for what it applies to, once.
func TestTicketsOfPolicies(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, "")
		path := fmt.Sprintf("/api/policies/v2/deployments/%d/remediation-policies", d.DeploymentID)
		var state struct {
			Version string `json:"state_version"`
		}
		if err := json.Unmarshal([]byte(d.Get(t, path)), &state); err != nil {
			t.Fatal(err)
		}
		put := func(instance string, want int) string {
			policy := fmt.Sprintf(`{"bundle":{"policies":[{"name":"Tickets","active":true,"filters":{"mode":"all","conditions":[{"type":"severity","mode":"include","values":["high"]}]},
				"actions":[{"type":"ticket","config":{"ticketing_instance_id":%q,"project_id":"OPS"}}]}]}}`, instance)
			return d.Body(t, d.Token, http.MethodPut, path, policy, want, "If-Match", `"`+state.Version+`"`)
		}
		if got := put("999", http.StatusBadRequest); !strings.Contains(got, "there is no ticketing instance") {
			t.Errorf("an unknown instance: %s", got)
		}
		put(fmt.Sprint(d.instance), http.StatusOK)
		d.Upload(t, "acme/web", "main", []byte(strings.Replace(string(report("sqli a.go", "sqli b.go", "note c.go")), `"note","level":"error"`, `"note","level":"note"`, 1)))
		apitest.Eventually(t, "the policy's ticket", func() bool { return len(j.Issues()) == 1 && strings.Contains(d.tickets(t), " of 2:2") })
		if one := only(t, j); !strings.HasPrefix(one.Key, "OPS-") || one.Title != "sqli in acme/web (2 findings)" {
			t.Errorf("%+v", one)
		}
		j.LoseIssue() // the job looks for the ticket later
		d.Upload(t, "acme/web", "main", report("sqli a.go", "sqli b.go", "xss d.go"))
		apitest.Eventually(t, "the job waits", func() bool {
			return d.count(t, "river_job WHERE kind = 'file_tickets' AND state IN ('scheduled', 'retryable') AND attempt > 0") == 1
		})
		d.exec(t, "UPDATE tickets SET claimed_until = 1 WHERE claimed_until IS NOT NULL")
		d.exec(t, "UPDATE river_job SET scheduled_at = '2026-01-01 00:00:00' WHERE kind = 'file_tickets'")
		apitest.Eventually(t, "the ticket of the new finding", func() bool {
			return len(j.Issues()) == 2 && d.count(t, "ticket_links") == 3 && d.count(t, "tickets WHERE claimed_until IS NULL") == 2
		})
	})
}

// TestTicketsOfAutomations: an automation with ACTION_TYPE_JIRA creates all 25 tickets: a job creates up to 20.
func TestTicketsOfAutomations(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		h := d.gitHub(t, "")
		path := fmt.Sprintf("/api/notifications/deployments/%d/automations", d.DeploymentID)
		automation := func(instance string) string {
			return fmt.Sprintf(`{"automation":{"name":"Tickets","filters":{"conditions":[{"type":"CONDITION_TYPE_PRIMARY_REF","values":["true"]}]},
				"actions":[{"type":"ACTION_TYPE_JIRA","config":{"ticketing_instance_id":%q}}]}}`, instance)
		}
		for _, wrong := range []string{"999", "x", ""} {
			if got := d.post(t, path, automation(wrong), http.StatusBadRequest); !strings.Contains(got, "ticketing_instance_id") {
				t.Errorf("instance %q: %s", wrong, got)
			}
		}
		d.post(t, path, automation(fmt.Sprint(d.instance)), http.StatusOK)
		var list []string
		for i := range 25 {
			list = append(list, fmt.Sprintf("rule%d a.go", i))
		}
		d.Upload(t, "acme/web", "main", report(list...))
		apitest.Eventually(t, "a ticket for each rule", func() bool { return d.count(t, "tickets WHERE claimed_until IS NULL") == 25 })
		titles := map[string]bool{}
		for _, one := range h.Issues() {
			titles[one.Title] = true
		}
		if len(titles) != 25 || len(h.Issues()) != 25 {
			t.Errorf("%d issues with %d titles", len(h.Issues()), len(titles))
		}
		if keys := slices.Collect(func(yield func(string) bool) {
			for _, f := range d.findings(t) {
				if f.Ticket == nil && !yield(f.RuleName) {
					return
				}
			}
		}); len(keys) > 0 {
			t.Errorf("without a ticket: %v", keys)
		}
	})
}
