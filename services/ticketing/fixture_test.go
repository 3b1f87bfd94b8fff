package ticketing_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	ticketingv1 "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
	"github.com/palisade/palisade/services/ticketing/tracker/trackertest"
)

// desk calls the API as the first administrator of a deployment that has a tracker.
type desk struct {
	*apitest.Server
	instance int64
}

// eachDesk runs a test on both databases. Loopback trackers may be called.
func eachDesk(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Helper()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		test(t, &desk{Server: apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow = "127.0.0.1" })})
	})
}

// path is the path of the deployment's instances.
func (d *desk) path(more string, args ...any) string {
	return fmt.Sprintf("/api/notifications/deployments/%d/ticketing/v2", d.DeploymentID) + fmt.Sprintf(more, args...)
}

func (d *desk) post(t testing.TB, path, body string, want int) string {
	t.Helper()
	return d.Body(t, d.Token, http.MethodPost, path, body, want)
}

// connect connects a tracker; more are further fields of the instance.
func (d *desk) connect(t testing.TB, kind, address, user, token, project, more string) string {
	t.Helper()
	answer := d.post(t, d.path(""), fmt.Sprintf(`{"instance":{"instanceType":%q,"baseUrl":%q,"user":%q,"projectId":%q%s},"token":%q}`,
		kind, address, user, project, more, token), http.StatusOK)
	var out ticketingv1.CreateTicketingInstanceResponse
	if err := protojson.Unmarshal([]byte(answer), &out); err != nil {
		t.Fatal(err)
	}
	d.instance = out.GetInstance().GetId()
	return answer
}

func (d *desk) jira(t testing.TB, more string) *trackertest.Jira {
	t.Helper()
	j := trackertest.NewCloud(t)
	d.connect(t, "jira", j.URL, j.User, j.Token, "SEC", more)
	return j
}

func (d *desk) gitHub(t testing.TB, more string) *hosttest.GitHub {
	t.Helper()
	h := hosttest.NewGitHub(t)
	h.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/web", Visibility: "private", DefaultBranch: "main"}}
	d.connect(t, "github", h.URL, "", h.Token, "acme/web", more)
	return h
}

// create creates tickets in the instance.
func (d *desk) create(t testing.TB, body string) *ticketingv1.TicketingCreateTicketsResponse {
	t.Helper()
	var out ticketingv1.TicketingCreateTicketsResponse
	answer := d.post(t, d.path("/%d/create_tickets", d.instance), body, http.StatusOK)
	if err := protojson.Unmarshal([]byte(answer), &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// report is a report with a finding for each "rule file", on line 3.
func report(findings ...string) []byte {
	results := make([]string, len(findings))
	for i, one := range findings {
		rule, file, _ := strings.Cut(one, " ")
		results[i] = fmt.Sprintf(`{"ruleId":%q,"level":"error","message":{"text":"found by @everyone in <b>%s</b>"},
			"locations":[{"physicalLocation":{"artifactLocation":{"uri":%q},"region":{"startLine":3,"snippet":{"text":"bad %s"}}}}]}`, rule, file, file, file)
	}
	return fmt.Appendf(nil, `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":[%s]}]}`, strings.Join(results, ","))
}

// shown is a finding as v1 lists it.
type shown struct {
	ID       int64
	RuleName string `json:"rule_name"`
	Ticket   *struct {
		Slug   string  `json:"external_slug"`
		ID     int64   `json:"id"`
		Linked []int64 `json:"linked_issue_ids"`
		URL    string  `json:"url"`
	} `json:"external_ticket"`
}

// findings lists the findings on main, by id.
func (d *desk) findings(t testing.TB) map[int64]shown {
	t.Helper()
	var page struct{ Findings []shown }
	if err := json.Unmarshal([]byte(d.Get(t, "/api/v1/deployments/acme/findings?issue_type=sast&ref=main")), &page); err != nil {
		t.Fatal(err)
	}
	out := map[int64]shown{}
	for _, f := range page.Findings {
		out[f.ID] = f
	}
	return out
}

// tickets are the keys of the findings' tickets, and how many findings each has.
func (d *desk) tickets(t testing.TB) string {
	t.Helper()
	counts := map[string]int{}
	for _, f := range d.findings(t) {
		if f.Ticket != nil {
			counts[fmt.Sprintf("%s of %d", f.Ticket.Slug, len(f.Ticket.Linked))]++
		}
	}
	return fmt.Sprint(counts)
}
