package ticketing_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
	"github.com/palisade/palisade/services/ticketing/tracker/trackertest"
)

// run runs the synchronization of the instance once more, and waits for its end. Tickets count as not asked for.
func (d *desk) run(t testing.TB) {
	t.Helper()
	const waiting = "river_job WHERE kind IN ('due_tickets', 'sync_tickets') AND state IN ('available', 'running')"
	apitest.Eventually(t, "earlier runs have ended", func() bool { return d.count(t, waiting) == 0 })
	d.exec(t, "UPDATE tickets SET checked_at = 1 WHERE checked_at > 0")
	d.exec(t, "DELETE FROM river_job WHERE kind = 'sync_tickets'")
	text, state, now := "", "'available'", "datetime('now', 'subsec')"
	if d.Store.Postgres() {
		text, state, now = "::jsonb", "'available'::river_job_state", "now()"
	}
	d.exec(t, fmt.Sprintf(`INSERT INTO river_job (kind, args, max_attempts, queue, priority, state, scheduled_at)
		VALUES ('sync_tickets', '{"deployment_id": %d, "instance_id": %d}'%s, 25, 'tickets', 1, %s, %s)`, d.DeploymentID, d.instance, text, state, now))
	// The server starts runs of its own once a minute.
	apitest.Eventually(t, "the run has ended", func() bool {
		return d.count(t, "river_job WHERE kind = 'sync_tickets' AND finalized_at IS NOT NULL") > 0 && d.count(t, waiting) == 0
	})
}

func (d *desk) exec(t testing.TB, statement string) {
	t.Helper()
	_, writer := d.Store.DB()
	if _, err := writer.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func (d *desk) count(t testing.TB, from string) (n int) {
	t.Helper()
	reader, _ := d.Store.DB()
	if err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (d *desk) change(t testing.TB, body string) string {
	t.Helper()
	return d.Body(t, d.Token, http.MethodPatch, d.path("/%d", d.instance), body, http.StatusOK)
}

// states are the aggregate states of the findings on main, by rule.
func (d *desk) statuses(t testing.TB) string {
	t.Helper()
	var list []string
	for _, status := range []string{"open", "ignored", "fixed", "reviewing", "fixing"} {
		page := d.Get(t, "/api/v1/deployments/acme/findings?issue_type=sast&ref=main&status="+status)
		if n := strings.Count(page, `"rule_name"`); n > 0 {
			list = append(list, fmt.Sprint(status, " ", n))
		}
	}
	return strings.Join(list, ", ")
}

func only(t testing.TB, j *trackertest.Jira) trackertest.Issue {
	t.Helper()
	list := j.Issues()
	if len(list) != 1 {
		t.Fatalf("%d issues: %+v", len(list), list)
	}
	return list[0]
}

// TestTicketsFollowFindings: a ticket is closed with a comment when all its findings are fixed, and opened again with
// them. What a person closed stays closed.
func TestTicketsFollowFindings(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, `,"fixedTransitionState":{"semgrepAggregateState":"fixed"}`)
		d.Upload(t, "acme/web", "main", report("sqli a.go", "sqli b.go"))
		d.create(t, `{"issueFilters":{}}`)
		d.Upload(t, "acme/web", "main", report("sqli a.go"))
		d.run(t)
		if one := only(t, j); !one.Open || len(one.Comments) != 0 {
			t.Errorf("one of two is fixed: %+v", one)
		}
		d.Upload(t, "acme/web", "main", report())
		d.run(t)
		if one := only(t, j); one.Open || len(one.Comments) != 1 || !strings.Contains(one.Comments[0], "All findings of this ticket are fixed.") {
			t.Errorf("both are fixed: %+v", one)
		}
		d.run(t)
		d.Upload(t, "acme/web", "main", report("sqli b.go"))
		d.run(t)
		if one := only(t, j); !one.Open || len(one.Comments) != 2 || !strings.Contains(one.Comments[1], "open again") {
			t.Errorf("one is back: %+v", one)
		}
		j.SetStatus(only(t, j).Key, "Done")
		d.run(t)
		d.run(t)
		if one := only(t, j); one.Open || len(one.Comments) != 2 || d.statuses(t) != "open 1, fixed 1" {
			t.Errorf("a person closed it: %+v, findings %s", one, d.statuses(t))
		}
	})
}

// TestTicketThatCannotBeClosed: one ticket that the tracker does not close, and a comment that fails, do not stop the
// others. A ticket that a person opens again stays open, and a ticket that a person linked is never closed.
func TestTicketThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, `,"fixedTransitionState":{"semgrepAggregateState":"fixed"}`)
		d.Upload(t, "acme/web", "main", report("a a.go", "b a.go", "c a.go", "d a.go"))
		d.create(t, `{"issueFilters":{}}`)
		issues := j.Issues()
		own := d.findings(t)
		var linked int64
		for id, f := range own {
			if f.Ticket.Slug == issues[3].Key {
				linked = id
			}
		}
		d.post(t, d.path("/%d/tickets/unlink", d.instance), fmt.Sprintf(`{"issueIds":[%d]}`, linked), http.StatusOK)
		d.post(t, d.path("/%d/tickets/link", d.instance), fmt.Sprintf(`{"ticketUrl":%q,"issueIds":[%d]}`, j.URL+"/browse/"+issues[3].Key, linked), http.StatusOK)
		j.Answer("POST /rest/api/3/issue/"+issues[0].Key+"/transitions", hosttest.Status(http.StatusBadRequest, `{"errorMessages":["no"],"errors":{}}`))
		j.Answer("POST /rest/api/3/issue/"+issues[1].Key+"/comment", hosttest.Status(http.StatusInternalServerError, "no"))
		d.Upload(t, "acme/web", "main", report())
		d.run(t)
		d.run(t)
		issues = j.Issues()
		if !issues[0].Open || issues[1].Open || issues[2].Open || len(issues[2].Comments) != 1 || !issues[3].Open {
			t.Errorf("%+v", issues)
		}
		if n := countOf(j, "POST /rest/api/3/issue/"+issues[1].Key+"/comment"); n != 1 {
			t.Errorf("%d tries to comment", n)
		}
		j.SetStatus(issues[2].Key, "To Do")
		d.run(t)
		d.run(t)
		if one := j.Issues()[2]; !one.Open || len(one.Comments) != 1 {
			t.Errorf("a person opened it again: %+v", one)
		}
		rule, _, _ := strings.Cut(issues[2].Title, " ")
		d.Upload(t, "acme/web", "main", report(rule+" a.go"))
		d.run(t)
		d.Upload(t, "acme/web", "main", report())
		d.run(t)
		if one := j.Issues()[2]; one.Open || len(one.Comments) != 2 {
			t.Errorf("it was open and is fixed again: %+v", one)
		}
	})
}

// TestHiddenTickets: a ticket that the tracker does not show any more decides nothing.
func TestHiddenTickets(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, `,"closedState":"ignored"`)
		d.Upload(t, "acme/web", "main", report("sqli a.go"))
		d.create(t, `{"issueFilters":{}}`)
		j.Answer("GET /rest/api/3/issue/", hosttest.Status(http.StatusNotFound, `{"errorMessages":["Issue does not exist or you do not have permission to see it."],"errors":{}}`))
		d.run(t)
		if got := d.statuses(t); got != "open 1" {
			t.Errorf("hidden: %s", got)
		}
		j.Answer("GET /rest/api/3/issue/", nil)
		j.SetStatus(only(t, j).Key, "Done")
		d.run(t)
		if got := d.statuses(t); got != "ignored 1" {
			t.Errorf("shown again and closed: %s", got)
		}
	})
}

// TestFindingsFollowTickets: the open findings of a ticket that a person closed get the state of the instance. A ticket
// that was closed when it was linked decides nothing; a moved one has its new key.
func TestFindingsFollowTickets(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, `,"closedState":"ignored","closedReason":"acceptable_risk"`)
		d.Upload(t, "acme/web", "main", report("sqli a.go", "sqli b.go"))
		d.create(t, `{"issueFilters":{}}`)
		key := only(t, j).Key
		d.run(t)
		if got := d.statuses(t); got != "open 2" {
			t.Errorf("before: %s", got)
		}
		j.Move(key, "OPS-7")
		d.run(t)
		if got := d.tickets(t); got != "map[OPS-7 of 2:2]" {
			t.Errorf("after the move: %s", got)
		}
		j.SetStatus("OPS-7", "Done")
		d.run(t)
		list := d.Get(t, "/api/v1/deployments/acme/findings?issue_type=sast&ref=main&status=ignored")
		if strings.Count(list, `"triage_reason":"acceptable_risk"`) != 2 || strings.Count(list, `"triage_comment":"The ticket OPS-7 was closed."`) != 2 {
			t.Errorf("after the close: %s", list)
		}
		changes := d.Get(t, fmt.Sprintf("/api/agent/deployments/%d/findings/v2/changes", d.DeploymentID))
		if !strings.Contains(changes, `"actorKind":"tracker"`) {
			t.Errorf("changes %s", changes)
		}
		d.Upload(t, "acme/web", "main", report("sqli a.go", "sqli b.go", "xss c.go"))
		ids := slices.Sorted(maps.Keys(d.findings(t)))
		d.post(t, d.path("/%d/tickets/link", d.instance), fmt.Sprintf(`{"ticketUrl":%q,"issueIds":[%d]}`, j.URL+"/browse/OPS-7", ids[len(ids)-1]), http.StatusOK)
		d.run(t)
		if got := d.statuses(t); got != "open 1, ignored 2" {
			t.Errorf("a finding was linked to a closed ticket: %s", got)
		}
		j.Delete("OPS-7")
		d.run(t)
		if got := d.statuses(t); got != "open 1, ignored 2" {
			t.Errorf("the ticket is gone: %s", got)
		}
	})
}

// TestAutomaticTickets: new critical and high findings on the primary branch get tickets without a call, older and
// lesser ones do not.
func TestAutomaticTickets(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, "")
		d.Upload(t, "acme/web", "main", report("old a.go"))
		if got := d.change(t, `{"automationStates":{"sast":true}}`); !strings.Contains(got, `"automationStates":{"sast":true,"sca":false`) {
			t.Fatal(got)
		}
		d.Upload(t, "acme/web", "main", []byte(strings.Replace(string(report("old a.go", "new b.go", "note c.go")), `"note","level":"error"`, `"note","level":"note"`, 1)))
		d.Upload(t, "acme/web", "refs/pull/1/merge", report("pull d.go"))
		d.run(t)
		if one := only(t, j); one.Title != "new in acme/web" {
			t.Errorf("%+v", one)
		}
		d.run(t)
		only(t, j)
		j.LoseIssue()
		d.Upload(t, "acme/web", "main", report("old a.go", "new b.go", "lost f.go"))
		d.run(t)
		d.exec(t, "UPDATE tickets SET claimed_until = 1 WHERE claimed_until IS NOT NULL")
		d.run(t)
		if n := d.count(t, "tickets WHERE claimed_until IS NULL"); n != 2 || len(j.Issues()) != 2 {
			t.Errorf("after a lost answer: %d tickets, %d issues", n, len(j.Issues()))
		}
		d.change(t, `{"automationStates":{}}`)
		d.Upload(t, "acme/web", "main", report("old a.go", "new b.go", "later e.go"))
		d.run(t)
		if n := d.count(t, "finding_events WHERE kind = 'ticket_created' AND actor_kind = 'job'"); n != 2 {
			t.Errorf("%d events", n)
		}
	})
}
