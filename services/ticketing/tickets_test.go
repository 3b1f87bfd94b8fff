package ticketing_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent/findingevent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	ticketingv1 "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
	"github.com/palisade/palisade/services/ticketing/tracker/trackertest"
)

// TestTickets: a ticket for each rule and project, shown with its findings wherever findings are shown; a repeated call
// makes no second one; links can be replaced and removed.
func TestTickets(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, `,"labels":["appsec"]`)
		d.Upload(t, "acme/web", "main", report("sqli a.go", "sqli b.go", "xss c.go"))
		out := d.create(t, `{"issueFilters":{}}`)
		if len(out.GetSucceeded()) != 2 || len(out.GetFailed())+len(out.GetSkipped()) != 0 {
			t.Fatalf("%v", out)
		}
		issues := j.Issues()
		if len(issues) != 2 || !slices.Contains(issues[0].Labels, "appsec") || issues[0].Type != "Task" {
			t.Fatalf("%+v", issues)
		}
		at := slices.IndexFunc(issues, func(i trackertest.Issue) bool { return strings.HasPrefix(i.Title, "sqli") })
		for _, text := range []string{"found by @everyone in ", "high: a.go:3 (refs/heads/main)", "/console/acme/findings/"} {
			if !strings.Contains(issues[at].Body, text) {
				t.Errorf("the ticket lacks %q:\n%s", text, issues[at].Body)
			}
		}
		if issues[at].Title != "sqli in acme/web (2 findings)" {
			t.Errorf("title %s", issues[at].Title)
		}
		found := d.findings(t)
		if got := d.tickets(t); !strings.Contains(got, " of 2:2") || !strings.Contains(got, " of 1:1") {
			t.Errorf("findings have the tickets %s", got)
		}
		all := slices.Sorted(maps.Keys(found))
		again := d.create(t, fmt.Sprintf(`{"issueIds":[%d,%d,%d]}`, all[0], all[1], all[2]))
		if len(again.GetSkipped()) != 2 || !strings.HasPrefix(again.GetSkipped()[0].GetReason(), "has the ticket SEC-") || len(again.GetSucceeded())+len(again.GetFailed()) != 0 {
			t.Errorf("again: %v", again)
		}
		if none := d.create(t, `{"issueFilters":{}}`); len(none.GetSkipped())+len(none.GetSucceeded())+len(none.GetFailed()) != 0 {
			t.Errorf("a filter: %v", none)
		}
		if odd := d.create(t, `{"issueIds":[999]}`); len(odd.GetFailed()) != 1 || !strings.HasPrefix(odd.GetFailed()[0].GetError(), "not found") {
			t.Errorf("an unknown finding: %v", odd)
		}
		if told := d.create(t, `{"issueFilters":{"includeTicketed":true}}`); len(told.GetSkipped()) != 2 {
			t.Errorf("a filter with ticketed findings: %v", told)
		}
		if n := len(j.Issues()); n != 2 {
			t.Errorf("%d issues", n)
		}
		d.replaceAndUnlink(t, j, found, all)
	})
}

// replaceAndUnlink links all findings to the ticket of the last one, and unlinks them again.
func (d *desk) replaceAndUnlink(t *testing.T, j *trackertest.Jira, found map[int64]shown, all []int64) {
	target := found[all[2]].Ticket
	body := fmt.Sprintf(`{"ticket_url":%q,"issue_ids":["%d",%d]}`, j.URL+"/browse/"+target.Slug+"?x=1#y", all[0], all[2])
	want := fmt.Sprintf(`{"external_slug":%q,"linked_issue_ids":["%d","%d"],"replaced_issue_ids":["%d"],"ticket_id":%d,"ticket_url":%q}`,
		target.Slug, all[0], all[2], all[0], target.ID, target.URL)
	if got := d.post(t, fmt.Sprintf("/api/v1/deployments/%d/tickets/link", d.DeploymentID), body, http.StatusOK); got != want {
		t.Errorf("link answers\n%s, want\n%s", got, want)
	}
	if got := d.tickets(t); !strings.Contains(got, target.Slug+" of 2:2") {
		t.Errorf("after the link %s", got)
	}
	one := d.Get(t, fmt.Sprintf("/api/agent/deployments/%d/issues/v2/%d", d.DeploymentID, all[0]))
	if !strings.Contains(one, fmt.Sprintf(`"externalTicket":{"externalSlug":%q,"id":"%d","linkedIssueIds":["%d","%d"]`, target.Slug, target.ID, all[0], all[2])) ||
		!strings.Contains(one, `"Ticket linked"`) || !strings.Contains(one, "HISTORY_TYPE_TICKET_CREATED") {
		t.Errorf("issue %s", one)
	}
	unlink := fmt.Sprintf("/api/v1/deployments/%d/tickets/unlink", d.DeploymentID)
	if got := d.post(t, unlink, fmt.Sprintf(`{"issue_ids":[%d]}`, all[0]), http.StatusOK); got != fmt.Sprintf(`{"unlinked_issue_ids":["%d"]}`, all[0]) {
		t.Errorf("unlink answers %s", got)
	}
	if got := d.post(t, unlink, fmt.Sprintf(`{"issue_ids":[%d]}`, all[0]), http.StatusOK); got != `{"unlinked_issue_ids":[]}` {
		t.Errorf("unlink answers %s", got)
	}
	if got := d.tickets(t); !strings.Contains(got, target.Slug+" of 1:1") {
		t.Errorf("after the unlink %s", got)
	}
	remove := d.path("/%d/tickets/%d", d.instance, target.ID)
	if got := d.Body(t, d.Token, http.MethodDelete, remove, "", http.StatusOK); got != fmt.Sprintf(`{"issueIds":["%d"]}`, all[2]) {
		t.Errorf("delete answers %s", got)
	}
	d.Body(t, d.Token, http.MethodDelete, remove, "", http.StatusNotFound)
	if n := len(j.Issues()); n != 2 {
		t.Errorf("%d issues are left in the tracker", n)
	}
}

// TestTicketsV1 has the exact form of v1, at GitHub, with one ticket for each finding.
func TestTicketsV1(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		const path = "/api/v1/deployments/acme/tickets"
		d.post(t, path, `{"issue_type":"sast"}`, http.StatusBadRequest) // no tracker: FAILED_PRECONDITION
		h := d.gitHub(t, "")
		d.Upload(t, "acme/web", "main", report("sqli a.go", "sqli b.go"))
		all := slices.Sorted(maps.Keys(d.findings(t)))
		got := d.post(t, path, `{"issue_type":"sast","group_issues":false,"limit":1,"severities":["high"]}`, http.StatusOK)
		if !strings.Contains(got, `"external_slug":"acme/web#101"`) {
			t.Fatal(got)
		}
		failed, made := all[0], all[1]
		if !strings.Contains(got, fmt.Sprintf(`"failed":[{"error":"over the limit of 1 tickets: repeat the call for the rest","issue_ids":[%d]}]`, failed)) {
			failed, made = made, failed
		}
		ticket := d.findings(t)[made].Ticket
		want := fmt.Sprintf(`{"failed":[{"error":"over the limit of 1 tickets: repeat the call for the rest","issue_ids":[%d]}],"skipped":[],"succeeded":[{"external_slug":"acme/web#101","issue_ids":[%d],"ticket_id":%d,"ticket_url":%q}]}`,
			failed, made, ticket.ID, h.URL+"/acme/web/issues/101")
		if got != want {
			t.Errorf("create answers\n%s, want\n%s", got, want)
		}
		if body := h.Issues()[0].Body; !strings.Contains(body, "`found by @everyone in <b>") {
			t.Errorf("the text of a scanner has effect:\n%s", body)
		}
		got = d.post(t, path, fmt.Sprintf(`{"issue_type":"sast","issue_ids":["%d"]}`, made), http.StatusOK)
		if want := fmt.Sprintf(`{"failed":[],"skipped":[{"issue_ids":[%d],"reason":"has the ticket acme/web#101"}],"succeeded":[]}`, made); got != want {
			t.Errorf("again answers %s, want %s", got, want)
		}
		remove := fmt.Sprintf("/api/v1/deployments/%d/ticketing/v2/tickets/%d", d.DeploymentID, ticket.ID)
		if got := d.Body(t, d.Token, http.MethodDelete, remove, "", http.StatusOK); got != fmt.Sprintf(`{"issueIds":["%d"]}`, made) {
			t.Errorf("delete answers %s", got)
		}
		d.post(t, fmt.Sprintf("/api/v1/deployments/%d/tickets/link", d.DeploymentID), fmt.Sprintf(`{"ticket_url":"https://other.test/browse/A-1","issue_ids":[%d]}`, made), http.StatusBadRequest)
		for _, body := range []string{`{}`, `{"issue_type":"x"}`, `{"issue_type":"sast","limit":21}`, `{"issue_type":"sast","status":"removed"}`} {
			d.post(t, path, body, http.StatusBadRequest)
		}
	})
}

// TestLostAnswers: a ticket whose answer was lost is found again, also by a filter, and nobody makes a second one.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, "")
		d.Upload(t, "acme/web", "main", report("sqli a.go"))
		j.LoseIssue()
		lost := d.create(t, `{"issueFilters":{}}`)
		if len(lost.GetFailed()) != 1 || !strings.Contains(lost.GetFailed()[0].GetError(), "The ticket may exist") || len(j.Issues()) != 1 {
			t.Fatalf("%v", lost)
		}
		if got := d.tickets(t); got != "map[]" {
			t.Errorf("tickets without an answer are shown: %s", got)
		}
		if soon := d.create(t, `{"issueFilters":{}}`); len(soon.GetSkipped()) != 1 || !strings.Contains(soon.GetSkipped()[0].GetReason(), "half a minute") {
			t.Errorf("at once: %v", soon)
		}
		d.exec(t, "UPDATE tickets SET claimed_until = 1")
		again := d.create(t, `{"issueFilters":{}}`)
		if len(again.GetSucceeded()) != 1 || again.GetSucceeded()[0].GetExternalSlug() != j.Issues()[0].Key || len(j.Issues()) != 1 {
			t.Errorf("%v, issues %+v", again, j.Issues())
		}
		if got := d.tickets(t); !strings.Contains(got, " of 1:1") {
			t.Errorf("tickets %s", got)
		}
	})
}

// TestLostAnswersTwice: a search that fails does not make the ticket forgotten.
func TestLostAnswersTwice(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, "")
		d.Upload(t, "acme/web", "main", report("sqli a.go", "sqli b.go"))
		j.LoseIssue()
		d.create(t, `{"issueFilters":{}}`)
		one := slices.Min(slices.Collect(maps.Keys(d.findings(t))))
		for _, status := range []int{http.StatusTooManyRequests, http.StatusForbidden, http.StatusBadRequest} {
			d.exec(t, "UPDATE tickets SET claimed_until = 1")
			j.Answer("POST /rest/api/3/search", hosttest.Status(status, "{}"))
			if again := d.create(t, fmt.Sprintf(`{"issueIds":[%d]}`, one)); len(again.GetFailed()) != 1 || !strings.Contains(again.GetFailed()[0].GetError(), "may exist") {
				t.Errorf("the search answers %d: %v", status, again)
			}
		}
		j.Answer("POST /rest/api/3/search", nil)
		d.exec(t, "UPDATE tickets SET claimed_until = 1")
		if again := d.create(t, fmt.Sprintf(`{"issueIds":[%d]}`, one)); len(again.GetSucceeded()) != 1 || len(again.GetSucceeded()[0].GetIssueIds()) != 2 || len(j.Issues()) != 1 {
			t.Errorf("%v, issues %+v", again, j.Issues())
		}
	})
}

// TestRejectedTickets: what the tracker says is the reason, in the answer and in the finding; the finding stays free.
func TestRejectedTickets(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, "")
		d.Upload(t, "acme/web", "main", report("sqli a.go", "xss b.go"))
		j.RequireFields("customfield_1")
		out := d.create(t, `{"issueFilters":{}}`)
		if len(out.GetFailed()) != 1 || len(out.GetFailed()[0].GetIssueIds()) != 2 || !strings.Contains(out.GetFailed()[0].GetError(), "customfield_1") {
			t.Fatalf("%v", out)
		}
		calls := countOf(j, "POST /rest/api/3/issue")
		d.post(t, "/api/v1/deployments/acme/tickets", `{"issue_type":"sast","limit":1}`, http.StatusOK)
		if n := countOf(j, "POST /rest/api/3/issue") - calls; n != 1 {
			t.Errorf("%d tries with the limit 1", n)
		}
		issue := d.Get(t, fmt.Sprintf("/api/agent/deployments/%d/issues/v2/%d", d.DeploymentID, out.GetFailed()[0].GetIssueIds()[0]))
		if !strings.Contains(issue, `"ticketAttempts":[{"attemptedAt":"`) || !strings.Contains(issue, "HISTORY_TYPE_TICKET_ATTEMPTED") {
			t.Errorf("issues %s", issue)
		}
		d.Body(t, d.Token, http.MethodPatch, d.path("/%d", d.instance), `{"fields":{"customfield_1":"x"}}`, http.StatusOK)
		if out := d.create(t, `{"issueFilters":{}}`); len(out.GetSucceeded()) != 2 {
			t.Errorf("%v", out)
		}
		if fields := j.Issues()[0].Fields; fields["customfield_1"] != "x" {
			t.Errorf("fields %v", fields)
		}
		j.Answer("", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
		d.Upload(t, "acme/api", "main", report("a a.go", "b b.go"))
		calls = len(j.Requests())
		if out := d.create(t, `{"issueFilters":{}}`); len(out.GetFailed()) != 1 || len(out.GetFailed()[0].GetIssueIds()) != 2 {
			t.Errorf("%v", out)
		}
		if n := len(j.Requests()) - calls; n != 1 {
			t.Errorf("a tracker that rejects the token was called %d times", n)
		}
		if list := d.Get(t, d.path("")); !strings.Contains(list, `"isAuthRevoked":true`) || strings.Contains(list, j.Token) {
			t.Errorf("instances %s", list)
		}
	})
}

func countOf(j *trackertest.Jira, request string) (n int) {
	for _, one := range j.Requests() {
		if one == request {
			n++
		}
	}
	return n
}

// TestManyTickets: a call makes 20 tickets of up to 75 findings, for the severest first.
func TestManyTickets(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, "")
		var list []string
		for i := range 80 {
			list = append(list, fmt.Sprintf("many f%d.go", i))
		}
		for i := range 20 {
			list = append(list, fmt.Sprintf("rule%d a.go", i))
		}
		d.Upload(t, "acme/web", "main", []byte(strings.ReplaceAll(string(report(list...)), `"many","level":"error"`, `"many","level":"note"`)))
		out := d.create(t, `{"issueFilters":{}}`)
		sizes := map[int]int{}
		for _, one := range out.GetSucceeded() {
			sizes[len(one.GetIssueIds())]++
		}
		if len(out.GetSucceeded()) != 20 || sizes[1] != 20 || len(out.GetFailed()) != 1 || len(out.GetFailed()[0].GetIssueIds()) != 80 || !strings.HasPrefix(out.GetFailed()[0].GetError(), "over the limit of 20 tickets") {
			t.Errorf("%d tickets with sizes %v, failed %v", len(out.GetSucceeded()), sizes, out.GetFailed())
		}
		if rest := d.create(t, `{"issueFilters":{}}`); len(rest.GetSucceeded()) != 2 || len(rest.GetSucceeded()[0].GetIssueIds()) != 75 || len(rest.GetFailed()) != 0 || len(j.Issues()) != 22 {
			t.Errorf("the rest: %v, %d issues", rest, len(j.Issues()))
		}
	})
}

// TestTicketsAtOnce: calls for the same findings at the same time make one ticket.
func TestTicketsAtOnce(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, "")
		d.Upload(t, "acme/web", "main", report("sqli a.go", "sqli b.go"))
		client := ticketingv1.NewExternalTicketingServiceClient(d.Conn)
		var calls sync.WaitGroup
		made := make([]int, 6)
		errs := make([]error, len(made))
		for i := range made {
			calls.Go(func() {
				out, err := client.TicketingCreateTickets(d.Context(t, d.Token), &ticketingv1.TicketingCreateTicketsRequest{
					DeploymentId: d.DeploymentID, TicketingInstanceId: d.instance, IssueFilters: &findingsv1.IssuesFilter{},
				})
				made[i], errs[i] = len(out.GetSucceeded()), err
			})
		}
		calls.Wait()
		total := 0
		for i, n := range made {
			total += n
			if errs[i] != nil {
				t.Error(errs[i])
			}
		}
		if total != 1 || len(j.Issues()) != 1 {
			t.Errorf("%d calls made a ticket, there are %d issues", total, len(j.Issues()))
		}
		if n := d.Store.Reader.FindingEvent.Query().Where(findingevent.Kind("ticket_created")).CountX(d.System(t)); n != 2 {
			t.Errorf("%d events", n)
		}
	})
}

// TestTicketWalls: callers reach only the trackers, tickets and findings that they may see.
func TestTicketWalls(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		j := d.jira(t, "")
		d.Upload(t, "acme/web", "main", report("sqli a.go"))
		d.Upload(t, "acme/api", "main", report("sqli a.go"))
		if out := d.create(t, `{"issueFilters":{}}`); len(out.GetSucceeded()) != 2 {
			t.Fatalf("%v", out)
		}
		var ticket, id int64
		for _, f := range d.findings(t) {
			ticket, id = f.Ticket.ID, f.ID
		}
		other := d.AddTenant(t, "other")
		theirs := fmt.Sprintf("/api/notifications/deployments/%d/ticketing/v2", other.DeploymentID)
		for _, c := range []struct{ method, path, body string }{
			{http.MethodPost, theirs + fmt.Sprintf("/%d/create_tickets", d.instance), `{"issueFilters":{}}`},
			{http.MethodPost, theirs + fmt.Sprintf("/%d/check", d.instance), `{}`},
			{http.MethodPatch, theirs + fmt.Sprintf("/%d", d.instance), `{"projectId":"X"}`},
			{http.MethodDelete, theirs + fmt.Sprintf("/%d", d.instance), ""},
			{http.MethodDelete, theirs + fmt.Sprintf("/%d/tickets/%d", d.instance, ticket), ""},
			{http.MethodPost, theirs + fmt.Sprintf("/%d/tickets/unlink", d.instance), fmt.Sprintf(`{"issueIds":[%d]}`, id)},
			{http.MethodDelete, fmt.Sprintf("/api/v1/deployments/%d/ticketing/v2/tickets/%d", other.DeploymentID, ticket), ""},
		} {
			if got := d.Do(t, other.Token, c.method, c.path, c.body); got.Status != http.StatusNotFound {
				t.Errorf("%s %s of another tenant: %d %s", c.method, c.path, got.Status, got.Body)
			}
		}
		link := fmt.Sprintf(`{"ticketUrl":%q,"issueIds":[%d]}`, j.URL+"/browse/SEC-9", id)
		k := trackertest.NewCloud(t)
		created := d.Body(t, other.Token, http.MethodPost, theirs, fmt.Sprintf(`{"instance":{"instanceType":"jira","baseUrl":%q,"user":%q,"projectId":"SEC"},"token":%q}`, k.URL, k.User, k.Token), http.StatusOK)
		var own int64
		if _, err := fmt.Sscanf(created, `{"instance":{"id":%d,`, &own); err != nil {
			t.Fatal(created)
		}
		link = strings.Replace(link, j.URL, k.URL, 1)
		d.Body(t, other.Token, http.MethodPost, theirs+fmt.Sprintf("/%d/tickets/link", own), link, http.StatusNotFound)
		reader := d.AddToken(t, d.Tenant, access.TokenSpec{Name: "reader", Role: access.RoleReadOnly, Scopes: []access.Scope{access.ScopeWebAPI}})
		if got := d.Do(t, reader, http.MethodPost, d.path("/%d/create_tickets", d.instance), `{"issueFilters":{}}`); got.Status != http.StatusForbidden {
			t.Errorf("a reader creates tickets: %d %s", got.Status, got.Body)
		}
		member := d.AddToken(t, d.Tenant, access.TokenSpec{Name: "member", Role: access.RoleMember, Scopes: []access.Scope{access.ScopeWebAPI}})
		elsewhere := d.Do(t, member, http.MethodPost, d.path("/%d/create_tickets", d.instance), `{"issueFilters":{},"projectId":"OPS"}`)
		if elsewhere.Status != http.StatusBadRequest || !strings.Contains(elsewhere.Body, "projectId must be a project that the ticketing instance names: SEC") {
			t.Errorf("a member names another project: %d %s", elsewhere.Status, elsewhere.Body)
		}
		if n := len(j.Issues()) + len(k.Issues()); n != 2 {
			t.Errorf("%d issues", n)
		}
		apitest.Eventually(t, "the tickets are still linked", func() bool { return strings.Count(d.tickets(t), "of 1:1") == 2 })
	})
}
