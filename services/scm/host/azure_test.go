package host_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// joined is the webhook that all subscriptions with a URL are together.
func joined(hooks []hosttest.Hook) (list []hosttest.Hook) {
	for _, one := range hooks {
		i := slices.IndexFunc(list, func(h hosttest.Hook) bool { return h.URL == one.URL && h.Secret == one.Secret })
		if i < 0 {
			list = append(list, one)
			continue
		}
		list[i].Events = append(list[i].Events, one.Events...)
	}
	return list
}

func TestAzurePermissions(t *testing.T) {
	for name, c := range map[string]struct {
		denied, refused []string
		want            *scmv1.ScmTokenScopes
	}{
		"all":            {nil, nil, all},
		"no hooks":       {[]string{"7"}, nil, without(func(s *scmv1.ScmTokenScopes) { s.ManageWebhooks = false })},
		"no push":        {[]string{"4"}, nil, without(func(s *scmv1.ScmTokenScopes) { s.WriteContents, s.WritePullRequest = false, false })},
		"no identities":  {nil, []string{"GET /acme/_apis/identities"}, without(func(s *scmv1.ScmTokenScopes) { s.ReadMembers = false })},
		"no code":        {nil, []string{"GET /acme/TOOLS/_apis/git"}, without(func(s *scmv1.ScmTokenScopes) { s.ReadContents, s.ReadPullRequest = false, false })},
		"no permissions": {nil, []string{"GET /acme/_apis/permissions"}, &scmv1.ScmTokenScopes{ReadMetadata: true, ReadContents: true, ReadPullRequest: true, ReadMembers: true}},
	} {
		s := hosttest.NewAzure(t)
		s.Denied, s.Refused = c.denied, c.refused
		account, err := open(t, azureDevOps, s.URL, s.Token).Check(t.Context(), "acme/TOOLS")
		if err != nil || !proto.Equal(account.Scopes, c.want) || account.ID != hosttest.AzureProject || account.Path != "acme/tools" || account.URL != s.URL+"/acme/tools" {
			t.Errorf("%s: %+v, %v", name, account, err)
		}
	}
	s := hosttest.NewAzure(t)
	h := open(t, azureDevOps, s.URL, s.Token)
	account, err := h.Check(t.Context(), "acme")
	if err != nil || account.Path != "acme" || account.Scopes.GetManageWebhooks() || !account.Scopes.GetReadContents() {
		t.Errorf("organization: %+v, %v", account, err)
	}
	if _, err := h.Subscribe(t.Context(), "acme", host.Webhook{}); !host.Is(err, host.Unsupported) {
		t.Errorf("subscribed to an organization: %v", err)
	}
	if _, err := h.Check(t.Context(), "acme/none"); !host.Is(err, host.NotFound) {
		t.Errorf("no project: %v", err)
	}
}

// TestAzureSignIn: a page to sign in is a wrong token, whatever its status says.
func TestAzureSignIn(t *testing.T) {
	s := hosttest.NewAzure(t)
	for call, do := range calls(t.Context(), open(t, azureDevOps, s.URL, "wrong"), "acme/tools", "acme/tools/web") {
		if _, err := do(); !host.Is(err, host.Unauthorized) && !offline(call) {
			t.Errorf("%s: %v", call, err)
		}
	}
	s.Answer(hosttest.Status(http.StatusServiceUnavailable, "", "Retry-After", "30"))
	if _, err := open(t, azureDevOps, s.URL, s.Token).Check(t.Context(), "acme/tools"); !host.Is(err, host.RateLimited) {
		t.Errorf("busy: %v", err)
	}
	s.Answer(hosttest.Status(http.StatusConflict, `{"message":"TF401028: The reference has already been updated","typeKey":"GitReferenceStaleException"}`))
	if _, err := open(t, azureDevOps, s.URL, s.Token).Check(t.Context(), "acme/tools"); !host.Is(err, host.Refused) || !strings.Contains(err.Error(), "TF401028") {
		t.Errorf("conflict: %v", err)
	}
}

func TestAzureRepositories(t *testing.T) {
	s := hosttest.NewAzure(t)
	s.Repositories = []hosttest.Repository{
		{ID: 1, Name: "acme/tools/web", DefaultBranch: "main", Visibility: "private"}, {ID: 2, Name: "acme/tools/My App", Visibility: "public", Archived: true},
	}
	h := open(t, azureDevOps, s.URL, s.Token)
	for _, namespace := range []string{"acme", "acme/tools"} {
		var got []host.Repository
		for r, err := range h.Repositories(t.Context(), namespace) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		want := []host.Repository{
			{ID: hosttest.AzureID(1), Name: "acme/tools/web", URL: s.URL + "/acme/tools/_git/web", DefaultBranch: "main", Visibility: "private"},
			{ID: hosttest.AzureID(2), Name: "acme/tools/My App", URL: s.URL + "/acme/tools/_git/My%20App", Visibility: "public", Archived: true},
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v", namespace, got)
		}
	}
	for _, name := range []string{"acme/tools/web", "acme/tools/_git/web", "acme/tools/My App"} {
		if r, err := h.Repository(t.Context(), name); err != nil || !strings.HasPrefix(r.Name, "acme/tools/") {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
	before := len(s.Requests())
	for _, name := range []string{"", "acme", "acme/tools", "acme/tools/web/x", "acme/../web", "acme/tools/_git", "acme//web", "acme/tools/a?b", "acme/tools/a#b", "acme/tools/a\x00"} {
		if _, err := h.Repository(t.Context(), name); !host.Is(err, host.NotFound) {
			t.Errorf("repository %q: %v", name, err)
		}
	}
	if n := len(s.Requests()); n != before {
		t.Errorf("the host was asked: %q", s.Requests()[before:])
	}
}

func TestAzureNames(t *testing.T) {
	for path, want := range map[string]string{
		"acme/tools/_git/web": "acme/tools/web", "acme/_git/tools": "acme/tools/tools", "acme/tools/web": "acme/tools/web",
	} {
		if got := host.AzureName(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := host.RepositoryURL(azureDevOps, "https://tfs.acme.test/tfs/", "Main/My Tools/web"); got != "https://tfs.acme.test/tfs/Main/My%20Tools/_git/web" {
		t.Error(got)
	}
	if got := host.RepositoryURL(selfManaged, "https://git.acme.test", "acme/web"); got != "https://git.acme.test/acme/web" {
		t.Error(got)
	}
}

// TestAzureThreads: the first comment is edited, the thread resolved and opened, and only changed lines have one.
func TestAzureThreads(t *testing.T) {
	s := hosttest.NewAzure(t)
	s.PullRequests = map[int64]hosttest.Request{7: {State: "open", Files: []string{"a.go", "old.go => b.go", "c.go", "gone.go => "}, Unchanged: []string{"c.go"}}}
	h := open(t, azureDevOps, s.URL, s.Token)
	request, err := h.PullRequest(t.Context(), "acme/tools/web", 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []host.Line{{Path: "c.go", Line: 3}, {Path: "d.go", Line: 3}, {Path: "a.go", Line: 101}} {
		if _, err := h.CommentOnLine(t.Context(), "acme/tools/web", request, at, "x"); !host.Is(err, host.Outside) {
			t.Errorf("%v: %v", at, err)
		}
	}
	thread, err := h.CommentOnLine(t.Context(), "acme/tools/web", request, host.Line{Path: "b.go", Line: 100}, "marker one")
	if err != nil || thread.Note != 1 {
		t.Fatal(thread, err)
	}
	if found, err := h.FindThread(t.Context(), "acme/tools/web", 7, "marker one"); err != nil || found != thread {
		t.Errorf("%v %v", found, err)
	}
	for _, resolved := range []bool{true, false} {
		if err := h.ResolveThread(t.Context(), "acme/tools/web", 7, thread, resolved); err != nil || s.Threads()[0].Resolved != resolved {
			t.Errorf("resolved %v: %v", resolved, err)
		}
	}
	if err := h.EditThread(t.Context(), "acme/tools/web", 7, thread, "marker two"); err != nil || s.Threads()[0].First.Body != "marker two" {
		t.Errorf("%+v %v", s.Threads(), err)
	}
	s.NoDiffs = true
	for path, want := range map[string]host.Kind{"c.go": "", "d.go": host.Outside} {
		if _, err := h.CommentOnLine(t.Context(), "acme/tools/web", request, host.Line{Path: path, Line: 3}, "x"); want != "" && !host.Is(err, want) || want == "" && err != nil {
			t.Errorf("a host that does not compare lines: %s: %v", path, err)
		}
	}
	for _, id := range []string{"", "x", "0", "9999"} {
		if err := h.ResolveThread(t.Context(), "acme/tools/web", 7, host.Thread{ID: id, Note: 1}, true); !host.Is(err, host.NotFound) {
			t.Errorf("thread %q: %v", id, err)
		}
	}
	if files, err := h.ChangedFiles(t.Context(), "acme/tools/web", 7); err != nil || !slices.Contains(files, "gone.go") || !slices.Contains(files, "old.go") {
		t.Errorf("%q %v", files, err)
	}
	for _, commit := range []string{"3f2a", "0001"} {
		if err := h.SetStatus(t.Context(), "acme/tools/web", commit, host.Status{Name: "Palisade", Number: 7}); err != nil || len(s.Statuses(commit)) != 1 {
			t.Errorf("%s: %v %v", commit, err, s.Statuses(commit))
		}
	}
	if err := h.SetStatus(t.Context(), "acme/tools/web", "beef", host.Status{Name: "Palisade", Number: 7}); !host.Is(err, host.Failed) {
		t.Errorf("no such iteration: %v", err)
	}
}

// TestAzureRepairsSubscriptions: a part that somebody deleted comes back, a second one goes, and others stay.
func TestAzureRepairsSubscriptions(t *testing.T) {
	s := hosttest.NewAzure(t)
	h := open(t, azureDevOps, s.URL, s.Token)
	hook := host.Webhook{Callback: "https://palisade.acme.test/a", Secret: "s", Events: []host.Event{host.PullRequestEvent, host.BranchDeletedEvent, host.RepositoryEvent}}
	other := host.Webhook{Callback: "https://elsewhere.acme.test/b", Secret: "s", Events: []host.Event{host.ReviewCommentEvent}}
	for _, one := range []host.Webhook{hook, other} {
		if _, err := h.Subscribe(t.Context(), "acme/tools", one); err != nil {
			t.Fatal(err)
		}
	}
	s.DropHook("git.push")
	s.CopyHook("git.pullrequest.updated")
	made, err := h.UpdateWebhook(t.Context(), "acme/tools", hook.Callback, hook)
	if err != nil || fmt.Sprint(made.Events) != "[git.pullrequest.created git.pullrequest.merged git.pullrequest.updated git.push]" {
		t.Errorf("%+v %v", made, err)
	}
	if n := len(s.Hooks()); n != 5 {
		t.Errorf("%d subscriptions", n)
	}
	list, err := h.Subscriptions(t.Context(), "acme/tools")
	if err != nil || len(list) != 2 || len(list[0].Events)+len(list[1].Events) != 5 {
		t.Errorf("%+v %v", list, err)
	}
}

// TestPrincipalFailures: what Microsoft Entra ID may answer instead of a token.
func TestPrincipalFailures(t *testing.T) {
	key, _, err := host.NewPrincipalKey("acme/tools")
	if err != nil {
		t.Fatal(err)
	}
	var answer http.HandlerFunc
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // before that, a server does not see that the client is gone
		answer(w, r)
	}))
	defer server.Close()
	principal := host.Principal{SignIn: server.URL, Tenant: "t", Client: "c", Key: key}
	sign := func(p host.Principal, l egress.Limits) error {
		_, err := p.Open(t.Context(), "https://dev.azure.com", client(t, l))
		return err
	}
	const token = `{"token_type":"Bearer","access_token":"%s"}`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   host.Kind
		text   string
	}{
		"refused":     {hosttest.Status(401, `{"error":"invalid_client","error_description":"AADSTS700027: not registered\r\nTrace ID: 1"}`), host.Unauthorized, "AADSTS700027: not registered)"},
		"bad request": {hosttest.Status(400, `{"error":"unauthorized_client","error_description":"AADSTS700016: not found"}`), host.Unauthorized, "check tenantId and clientId"},
		"forbidden":   {hosttest.Status(403, `<html>`), host.Forbidden, "signing in at Microsoft Entra ID failed"},
		"not found":   {hosttest.Status(404, ``), host.NotFound, "signing in"},
		"slow down":   {hosttest.Status(429, `{"error":"throttled"}`, "Retry-After", "30"), host.RateLimited, "rate limit"},
		"busy":        {hosttest.Status(503, ``, "Retry-After", "30"), host.RateLimited, "rate limit"},
		"failed":      {hosttest.Status(500, `{"error":"server_error"}`), host.Failed, "status 500"},
		"page":        {hosttest.Status(200, `<html>`), host.Malformed, "not an access token"},
		"null":        {hosttest.Status(200, `null`), host.Malformed, "not an access token"},
		"empty":       {hosttest.Status(200, ``), host.Malformed, "not an access token"},
		"no token":    {hosttest.Status(200, `{}`), host.Malformed, "not an access token"},
		"two lines":   {hosttest.Status(200, fmt.Sprintf(token, `a\nb`)), host.Malformed, "not an access token"},
		"a long one":  {hosttest.Status(200, fmt.Sprintf(token, strings.Repeat("a", 17<<10))), host.Malformed, "not an access token"},
		"elsewhere":   {http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect).ServeHTTP, host.Unreachable, "redirected"},
		"hangs":       {hosttest.Hang, host.TimedOut, "could not be reached"},
	} {
		answer = c.answer
		if err := sign(principal, egress.Limits{Timeout: time.Second, MaxResponse: 1 << 20, MaxRedirects: 3}); !host.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	answer = hosttest.Status(200, fmt.Sprintf(token, "abc.def-ghi"))
	if err := sign(principal, egress.Limits{Timeout: time.Minute}); err != nil {
		t.Error(err)
	}
	principal.Key = "damaged"
	if err := sign(principal, egress.Limits{Timeout: time.Minute}); !host.Is(err, host.Unauthorized) || !strings.Contains(err.Error(), "create it again") {
		t.Error(err)
	}
}
