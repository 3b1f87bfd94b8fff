package scm_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// azureWeb is the repository of the recorded events at Azure DevOps.
var azureWeb = hosttest.Repository{ID: 1, Name: "acme/tools/web", DefaultBranch: "main", Visibility: "private"}

// azure starts an Azure DevOps and connects the deployment to its project.
func (c configCaller) azure(t testing.TB, more string) (*hosttest.Azure, int64) {
	t.Helper()
	h := hosttest.NewAzure(t)
	h.Repositories = []hosttest.Repository{azureWeb}
	h.PullRequests = map[int64]hosttest.Request{17: {State: "open", Files: []string{"app/login.go"}}}
	id, _ := c.create(t, "SCM_TYPE_AZURE_DEVOPS", h.URL, "acme/tools", h.Token, more)
	return h, id
}

// azureDevOps sends an event like Azure DevOps.
func (r receiver) azureDevOps(t testing.TB, body string, status int, want string) {
	t.Helper()
	r.answer(t, body, status, want, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("palisade:"+r.secret)))
}

// TestAzureConnection: check, synchronisation and webhook of a project with an access token.
func TestAzureConnection(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.azure(t, "")
		if body := s.Get(t, s.path("/%d/check", id)); !strings.Contains(body, `"ok":true`) || !strings.Contains(body, `"manageWebhooks":true`) {
			t.Errorf("check %s", body)
		}
		if got := s.read(t, id); got.ScmID != hosttest.AzureProject {
			t.Errorf("%+v", got)
		}
		h.Repositories = append(h.Repositories, hosttest.Repository{ID: 2, Name: "acme/tools/My App", Visibility: "private", Archived: true})
		s.sync(t, id)
		if row := s.project(t, "acme/tools/web"); row.RepositoryURL != h.URL+"/acme/tools/_git/web" || row.DefaultBranch != "refs/heads/main" || row.ScmType != "SCM_TYPE_AZURE_DEVOPS" {
			t.Errorf("%+v", row)
		}
		if row := s.project(t, "acme/tools/My App"); row.RepositoryURL != h.URL+"/acme/tools/_git/My%20App" || row.ArchivedAt == nil {
			t.Errorf("%+v", row)
		}
		renamed := azureWeb
		renamed.Name = "acme/tools/site"
		h.Repositories = []hosttest.Repository{renamed}
		s.sync(t, id)
		if row := s.project(t, "acme/tools/site"); row.RepositoryURL != h.URL+"/acme/tools/_git/site" {
			t.Errorf("renamed: %+v", row)
		}
		if row := s.project(t, "acme/tools/My App"); row.LeftHostAt == nil {
			t.Errorf("left: %+v", row)
		}
		s.do(t, http.MethodPut, s.subscriptions(id, ""), "", http.StatusOK)
		if hooks := h.Hooks(); len(hooks) != 5 || hooks[0].Insecure || hooks[0].Secret == "" || hooks[0].Secret != hooks[4].Secret {
			t.Fatalf("hooks %+v", hooks)
		}
		before := h.Hooks()[0].Secret
		s.do(t, http.MethodPost, s.subscriptions(id, "/rotate_secret"), "", http.StatusOK)
		if hooks := h.Hooks(); len(hooks) != 5 || hooks[0].Secret == before || hooks[0].Secret != hooks[4].Secret {
			t.Errorf("rotated %+v", hooks)
		}
		s.do(t, http.MethodDelete, s.subscriptions(id, ""), "", http.StatusOK)
		if hooks := h.Hooks(); len(hooks) != 0 {
			t.Errorf("left %+v", hooks)
		}
		h.Answer(hosttest.Status(http.StatusNonAuthoritativeInfo, "<!DOCTYPE html><title>Sign In</title>"))
		if body := s.Get(t, s.path("/%d/check", id)); !strings.Contains(body, "set a new accessToken") {
			t.Errorf("a page to sign in: %s", body)
		}
	})
}

// TestAzureNamespaces: organizations and projects, whose names may have spaces. No other host has such names.
func TestAzureNamespaces(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		for namespace, want := range map[string]int{
			"acme": 201, "acme/tools": 201, "acme/My Tools": 201, "acme/tools/web": 400, "acme/ tools": 400, "acme/tools ": 400, "ac me": 400, "acme/../x": 400,
		} {
			s.do(t, http.MethodPost, s.path(""), fmt.Sprintf(`{"type":"SCM_TYPE_AZURE_DEVOPS","namespace":%q,"accessToken":"t"}`, namespace), want)
		}
		s.do(t, http.MethodPost, s.path(""), `{"type":"SCM_TYPE_GITLAB","namespace":"acme/My Tools","accessToken":"t"}`, http.StatusBadRequest)
		row, err := s.Store.Reader.ScmConfig.Query().Order(ent.Asc("id")).First(s.System(t))
		if err != nil || row.BaseURL != "https://dev.azure.com" {
			t.Errorf("%+v %v", row, err)
		}
	})
}

// TestAzureWebhooks: closed pull requests and deleted branches end, and only the holder of the secret is heard.
func TestAzureWebhooks(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.azure(t, `,"subscribe":true`)
		s.sync(t, id)
		for _, ref := range []string{mainRef, pullRef, "refs/heads/topic", "refs/heads/other", "refs/heads/kept"} {
			s.Upload(t, "acme/tools/web", ref, sarifOf(t, 42))
		}
		r := s.receiverOf(t, h.Hooks()[0])
		closed, push := event(t, "azure_pull_request"), event(t, "azure_push")
		wrong := r
		wrong.secret = "guessed"
		wrong.azureDevOps(t, closed, 404, "there is no webhook")
		r.answer(t, closed, 404, "there is no webhook", "X-Gitlab-Token", r.secret)
		r.answer(t, closed, 404, "there is no webhook")
		r.azureDevOps(t, `{"eventType":"git.push"`, 400, "not a webhook of this host")
		r.azureDevOps(t, event(t, "azure_pull_request", `"completed"`, `"active"`), 200, accepted)
		r.azureDevOps(t, event(t, "azure_pull_request", `"name": "tools"`, `"name": "secret"`), 200, `{"status":"ignored"}`)
		r.azureDevOps(t, push, 200, accepted)
		r.azureDevOps(t, push, 200, `{"status":"duplicate"}`)
		s.settle(t)
		wantList(t, "after the push", s.stands(t, s.Tenant), mainRef+" open", pullRef+" open", "refs/heads/topic removed", "refs/heads/other removed", "refs/heads/kept open")
		r.azureDevOps(t, closed, 200, accepted)
		s.settle(t)
		wantList(t, "after the merge", s.stands(t, s.Tenant), mainRef+" open", pullRef+" removed", "refs/heads/topic removed", "refs/heads/other removed", "refs/heads/kept open")
	})
}

// TestSeveralCredentials: a request with two credentials is refused, also since the headers of webhooks have one.
func TestSeveralCredentials(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+s.path(""), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
			request.Header.Add("Authorization", "Bearer "+s.Token)
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if _ = answer.Body.Close(); answer.StatusCode != want {
				t.Errorf("status %d, want %d", answer.StatusCode, want)
			}
		}
	})
}

// TestAzureComments: a person who may write triages by a reply, and gets one.
func TestAzureComments(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.azure(t, `,"subscribe":true`)
		h.Writers = []string{"octavia"}
		s.sync(t, id)
		s.Upload(t, "acme/tools/web", pullRef, sarifOf(t, 42, 90))
		ids := s.Store.Reader.Finding.Query().Where(finding.Ref(pullRef)).Order(ent.Asc(finding.FieldID)).IDsX(s.System(t))
		h.Comments = []hosttest.Comment{{ID: 1, Author: "palisade", Body: fmt.Sprintf("<!-- palisade:finding=%d -->", ids[0]), Path: "app/login.go", Line: 42}}
		s.toggle(t, s.Tenant, true)
		r := s.receiverOf(t, h.Hooks()[0])
		r.azureDevOps(t, event(t, "azure_comment", `"uniqueName": "octavia"`, `"uniqueName": "mallory"`), 200, accepted)
		s.settle(t)
		wantList(t, "of a reader", s.stands(t, s.Tenant), pullRef+" open", pullRef+" open")
		r.azureDevOps(t, event(t, "azure_comment"), 200, accepted)
		r.azureDevOps(t, event(t, "azure_comment", `"notificationId": 4`, `"notificationId": 5`), 200, accepted) // an edit, or another webhook
		s.settle(t)
		wantList(t, "of a writer", s.stands(t, s.Tenant), pullRef+" ignored false_positive: the input is a constant", pullRef+" open")
		if last := h.Comments[len(h.Comments)-1]; len(h.Comments) != 2 || !strings.Contains(last.Body, "was ignored as false positive at the request of octavia") {
			t.Errorf("comments %+v", h.Comments)
		}
	})
}
