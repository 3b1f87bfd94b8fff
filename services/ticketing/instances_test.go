package ticketing_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	ticketingv1 "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/ticketing/tracker/trackertest"
)

// TestInstances: a tracker is connected, shown without its credential, checked, changed and removed.
func TestInstances(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		if got := d.Get(t, d.path("")); got != `{"instances":[]}` {
			t.Errorf("no instances: %s", got)
		}
		j := trackertest.NewCloud(t)
		answer := d.connect(t, "jira", j.URL+"/", j.User, j.Token, "SEC", `,"issueTypeId":"Bug","fields":{"priority":{"name":"High"}},"labels":["appsec"],"mappings":[{"repository":"acme/*","projectId":"OPS"}]`)
		want := fmt.Sprintf(`{"id":%d,"isConfigured":true,"isAuthRevoked":false,"instanceType":"jira","subdomain":%q,"projectId":"SEC","issueTypeId":"Bug","fields":{"priority":{"name":"High"}},"automationStates":{"sast":false,"sca":false,"secrets":false,"scaMaliciousDeps":false,"aiSast":false},"subtaskIssueTypeId":"","baseUrl":%q,"user":%q,"labels":["appsec"],"mappings":[{"repository":"acme/*","projectId":"OPS"}],"closedState":"","closedReason":""}`,
			d.instance, strings.TrimPrefix(j.URL, "http://"), j.URL, j.User)
		if answer != `{"instance":`+want+`}` {
			t.Errorf("created\n%s, want\n%s", answer, want)
		}
		list := d.Get(t, d.path(""))
		if list != `{"instances":[`+want+`]}` {
			t.Errorf("listed %s", list)
		}
		out, err := ticketingv1.NewExternalTicketingServiceClient(d.Conn).GetTicketingTicketingInstances(d.Context(t, d.Token),
			&ticketingv1.GetTicketingTicketingInstancesRequest{DeploymentId: d.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, out, list)
		reader := d.AddToken(t, d.Tenant, access.TokenSpec{Name: "reader", Role: access.RoleReadOnly, Scopes: []access.Scope{access.ScopeWebAPI}})
		if got := d.Body(t, reader, http.MethodGet, d.path(""), "", http.StatusOK); strings.Contains(got, j.User) || strings.Contains(got, "acme/*") || !strings.Contains(got, `"projectId":"SEC"`) {
			t.Errorf("a reader sees %s", got)
		}
		check := d.path("/%d/check", d.instance)
		if got := d.post(t, check, `{}`, http.StatusOK); !strings.Contains(got, `"ok":false`) && !strings.Contains(got, `"ok":true`) {
			t.Errorf("check %s", got)
		}
		d.Body(t, d.Token, http.MethodPatch, d.path("/%d", d.instance), `{"projectId":"NONE","lists":{}}`, http.StatusOK)
		if got := d.post(t, check, `{}`, http.StatusOK); !strings.Contains(got, `{"ok":false,"problems":["NONE: `) {
			t.Errorf("check of a missing project %s", got)
		}
		d.Body(t, d.Token, http.MethodPatch, d.path("/%d", d.instance), `{"projectId":"SEC","issueTypeId":"","token":"wrong"}`, http.StatusOK)
		if got := d.post(t, check, `{}`, http.StatusOK); !strings.Contains(got, `"ok":false`) || !strings.Contains(d.Get(t, d.path("")), `"isAuthRevoked":true`) {
			t.Errorf("check with a wrong token %s", got)
		}
		d.Body(t, d.Token, http.MethodPatch, d.path("/%d", d.instance), fmt.Sprintf(`{"token":%q}`, j.Token), http.StatusOK)
		if got := d.post(t, check, `{}`, http.StatusOK); got != `{"ok":true,"problems":[]}` || !strings.Contains(d.Get(t, d.path("")), `"isAuthRevoked":false`) {
			t.Errorf("check %s", got)
		}
		d.Body(t, d.Token, http.MethodDelete, d.path("/%d", d.instance), "", http.StatusOK)
		d.Body(t, d.Token, http.MethodDelete, d.path("/%d", d.instance), "", http.StatusNotFound)
	})
}

// TestInvalidInstances: the error names the field.
func TestInvalidInstances(t *testing.T) {
	t.Parallel()
	eachDesk(t, func(t *testing.T, d *desk) {
		for body, field := range map[string]string{
			`{"instance":{},"token":"t"}`:                                                                                    "instance.instanceType",
			`{"instance":{"instanceType":"trello"},"token":"t"}`:                                                             "instance.instanceType",
			`{"instance":{"instanceType":"jira"},"token":"t"}`:                                                               "instance.baseUrl",
			`{"instance":{"instanceType":"jira","baseUrl":"ftp://x"},"token":"t"}`:                                           "instance.baseUrl",
			`{"instance":{"instanceType":"jira","baseUrl":"https://acme.test"},"token":"t"}`:                                 "instance.user",
			`{"instance":{"instanceType":"github"}}`:                                                                         "token",
			`{"instance":{"instanceType":"github","mappings":[{"repository":"acme/[","projectId":"acme/web"}]},"token":"t"}`: "instance.mappings[0].repository",
			`{"instance":{"instanceType":"github","projectId":"` + strings.Repeat("x", 256) + `"},"token":"t"}`:              "instance.projectId",
			`{"instance":{"instanceType":"github","fields":{"a":"` + strings.Repeat("x", 17_000) + `"}},"token":"t"}`:        "instance.fields",
			`{"instance":{"instanceType":"github","labels":["two words"]},"token":"t"}`:                                      "instance.labels[0]",
		} {
			if got := d.post(t, d.path(""), body, http.StatusBadRequest); !strings.Contains(got, field) {
				t.Errorf("%.100s: %s, want %s", body, got, field)
			}
		}
	})
}
