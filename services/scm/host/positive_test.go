package host_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

var all = &scmv1.ScmTokenScopes{
	ReadMetadata: true, ReadPullRequest: true, WritePullRequestComment: true, ReadContents: true, ReadMembers: true, ManageWebhooks: true,
	WriteContents: true, WritePullRequest: true,
}

// without is all scopes but some.
func without(change func(*scmv1.ScmTokenScopes)) *scmv1.ScmTokenScopes {
	s, _ := proto.Clone(all).(*scmv1.ScmTokenScopes)
	change(s)
	return s
}

func TestGitHubScopes(t *testing.T) {
	text := func(s string) *string { return &s }
	private := []hosttest.Repository{
		{ID: 1, Name: "acme/site", Visibility: "public", DefaultBranch: "main"},
		{ID: 2, Name: "acme/web", Visibility: "private", DefaultBranch: "main"},
	}
	for name, c := range map[string]struct {
		scopes       *string
		refused      []string
		repositories []hosttest.Repository
		want         *scmv1.ScmTokenScopes
	}{
		"classic, all":          {text("admin:org_hook, read:org, repo"), nil, nil, all},
		"classic, repo":         {text("repo"), nil, nil, without(func(s *scmv1.ScmTokenScopes) { s.ReadMembers, s.ManageWebhooks = false, false })},
		"classic, none":         {text(""), nil, nil, &scmv1.ScmTokenScopes{}},
		"classic, organization": {text("admin:org"), nil, nil, &scmv1.ScmTokenScopes{ReadMembers: true}},
		"fine-grained, all":     {nil, nil, private, all},
		"fine-grained, no hooks": {nil, []string{"GET /api/v3/orgs/acme/hooks"}, private,
			without(func(s *scmv1.ScmTokenScopes) { s.ManageWebhooks = false })},
		"fine-grained, no pull requests": {nil, []string{"GET /api/v3/repos/acme/web/pulls"}, private,
			without(func(s *scmv1.ScmTokenScopes) {
				s.ReadPullRequest, s.WritePullRequest, s.WritePullRequestComment = false, false, false
			})},
		"fine-grained, no repository": {nil, nil, nil, &scmv1.ScmTokenScopes{ReadMetadata: true, ReadMembers: true, ManageWebhooks: true}},
		"fine-grained, nothing":       {nil, []string{"GET /api/v3/orgs/"}, private, &scmv1.ScmTokenScopes{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := hosttest.NewGitHub(t)
			s.Scopes, s.Refused, s.Repositories = c.scopes, c.refused, c.repositories
			account, err := open(t, enterprise, s.URL, s.Token).Check(t.Context(), "ACME")
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(account.Scopes, c.want) {
				t.Errorf("got %v\nwant %v", account.Scopes, c.want)
			}
			if account.ID != "7001" || account.Path != "acme" || account.Entity != host.Org || account.URL != s.URL+"/acme" {
				t.Errorf("account %+v", account)
			}
			if agents := s.Agents(); agents[0] == "" {
				t.Errorf("no User-Agent, which GitHub refuses")
			}
		})
	}
}

func TestGitLabScopes(t *testing.T) {
	for name, c := range map[string]struct {
		scopes []string
		level  int
		want   *scmv1.ScmTokenScopes
	}{
		"owner":         {[]string{"api"}, 50, all},
		"developer":     {[]string{"api"}, 30, &scmv1.ScmTokenScopes{ReadMetadata: true, ReadPullRequest: true, WritePullRequestComment: true, ReadContents: true, ReadMembers: true, WriteContents: true, WritePullRequest: true}},
		"reporter":      {[]string{"api"}, 20, &scmv1.ScmTokenScopes{ReadMetadata: true, ReadPullRequest: true, WritePullRequestComment: true, ReadContents: true, ReadMembers: true}},
		"no member":     {[]string{"api"}, 0, &scmv1.ScmTokenScopes{ReadMetadata: true, ReadPullRequest: true, ReadMembers: true}},
		"reading owner": {[]string{"read_api", "write_repository"}, 50, &scmv1.ScmTokenScopes{ReadMetadata: true, ReadPullRequest: true, ReadContents: true, ReadMembers: true, WriteContents: true}},
		"registry":      {[]string{"read_registry"}, 50, &scmv1.ScmTokenScopes{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := hosttest.NewGitLab(t)
			s.Scopes, s.Level = c.scopes, c.level
			account, err := open(t, selfManaged, s.URL, s.Token).Check(t.Context(), "acme/platform")
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(account.Scopes, c.want) {
				t.Errorf("got %v\nwant %v", account.Scopes, c.want)
			}
			if account.ID != "42" || account.Path != "acme/platform" || account.Entity != host.Org {
				t.Errorf("account %+v", account)
			}
		})
	}
}

func TestPersons(t *testing.T) {
	gitHub, gitLab := hosttest.NewGitHub(t), hosttest.NewGitLab(t)
	gitHub.Repositories = []hosttest.Repository{{ID: 9, Name: "octavia/dotfiles", Visibility: "private", DefaultBranch: "main"}}
	for name, h := range map[string]host.Host{
		"github": open(t, enterprise, gitHub.URL, gitHub.Token), "gitlab": open(t, selfManaged, gitLab.URL, gitLab.Token),
	} {
		account, err := h.Check(t.Context(), "octavia")
		if err != nil || account.Entity != host.User || !account.Scopes.GetWriteContents() {
			t.Errorf("%s: %+v, %v", name, account, err)
		}
		if _, err := h.Subscribe(t.Context(), "octavia", host.Webhook{}); !host.Is(err, host.Unsupported) {
			t.Errorf("%s: subscribed to a person: %v", name, err)
		}
		if _, err := h.Check(t.Context(), "nobody"); !host.Is(err, host.NotFound) {
			t.Errorf("%s: nobody: %v", name, err)
		}
	}
	if gitHub.Count("GET /api/v3/user/repos") != 0 {
		t.Error("a classic token was probed")
	}
	for _, err := range open(t, enterprise, gitHub.URL, gitHub.Token).Repositories(t.Context(), "octavia") {
		if err != nil {
			t.Fatal(err)
		}
	}
	if gitHub.Count("GET /api/v3/user/repos") != 1 {
		t.Error("a person's own token does not list the private repositories")
	}
}

func TestRepositories(t *testing.T) {
	gitHub, gitLab := hosttest.NewGitHub(t), hosttest.NewGitLab(t)
	var want []host.Repository
	for i := range 250 {
		r := hosttest.Repository{ID: int64(i + 1), Name: fmt.Sprintf("acme/service-%03d", i), DefaultBranch: "main", Visibility: []string{"public", "private", "internal"}[i%3], Archived: i%10 == 0}
		gitHub.Repositories = append(gitHub.Repositories, r)
		visibility := map[bool]string{true: "public", false: "private"}[i%3 == 0]
		want = append(want, host.Repository{ID: fmt.Sprint(i + 1), Name: r.Name, DefaultBranch: "main", Visibility: visibility, Archived: r.Archived})
	}
	gitLab.Repositories = gitHub.Repositories
	for base, h := range map[string]host.Host{
		gitHub.URL: open(t, enterprise, gitHub.URL, gitHub.Token), gitLab.URL: open(t, selfManaged, gitLab.URL, gitLab.Token),
	} {
		namespace := "acme"
		if base == gitLab.URL {
			namespace = "acme/platform"
		}
		var got []host.Repository
		for r, err := range h.Repositories(t.Context(), namespace) {
			if err != nil {
				t.Fatal(err)
			}
			if r.URL != base+"/"+r.Name {
				t.Fatalf("URL of %s: %s", r.Name, r.URL)
			}
			r.URL = ""
			got = append(got, r)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%T: %d repositories, %+v …", h, len(got), got[:min(3, len(got))])
		}
	}
	for range open(t, enterprise, gitHub.URL, gitHub.Token).Repositories(t.Context(), "acme") {
		break
	}
	if n := gitHub.Count("GET /api/v3/orgs/acme/repos"); n != 3+1 {
		t.Errorf("%d pages were read, want 3 and the first again", n)
	}
}

func TestWebhooks(t *testing.T) {
	gitHub, gitLab, azure := hosttest.NewGitHub(t), hosttest.NewGitLab(t), hosttest.NewAzure(t)
	for name, c := range map[string]struct {
		h         host.Host
		hooks     func() []hosttest.Hook
		namespace string
		url       string
		events    []string
	}{
		"github": {open(t, enterprise, gitHub.URL, gitHub.Token), gitHub.Hooks, "acme", gitHub.URL + "/acme", []string{"pull_request", "pull_request_review_comment"}},
		"gitlab": {open(t, selfManaged, gitLab.URL, gitLab.Token), gitLab.Hooks, "acme/platform", gitLab.URL + "/groups/acme/platform", []string{"merge_requests_events", "note_events"}},
		"azure": {open(t, azureDevOps, azure.URL, azure.Token), func() []hosttest.Hook { return joined(azure.Hooks()) }, "acme/tools", azure.URL + "/acme/tools",
			[]string{"git.pullrequest.created", "git.pullrequest.merged", "git.pullrequest.updated", "ms.vss-code.git-pullrequest-comment-event"}},
	} {
		t.Run(name, func(t *testing.T) {
			hook := host.Webhook{Callback: "https://palisade.acme.test/api/scm/webhooks/k1", Secret: "first", Events: []host.Event{host.ReviewCommentEvent, host.PullRequestEvent}}
			made, err := c.h.Subscribe(t.Context(), c.namespace, hook)
			if err != nil || made.Callback != hook.Callback || made.URL != c.url || !slices.Equal(made.Events, c.events) || !made.Active {
				t.Fatalf("made %+v, %v", made, err)
			}
			if at := c.hooks()[0]; at.Secret != "first" || at.Insecure || at.URL != hook.Callback || len(at.Events) != len(c.events) {
				t.Errorf("the host has %+v", at)
			}
			listed, err := c.h.Subscriptions(t.Context(), c.namespace)
			if err != nil || len(listed) != 1 || listed[0].ID != made.ID || listed[0].Callback != hook.Callback {
				t.Errorf("listed %+v, %v", listed, err)
			}
			hook.Secret, hook.Events = "second", []host.Event{host.PullRequestEvent}
			if changed, err := c.h.UpdateWebhook(t.Context(), c.namespace, made.ID, hook); err != nil || !slices.Equal(changed.Events, c.events[:len(c.events)-1]) {
				t.Errorf("changed %+v, %v", changed, err)
			}
			if at := c.hooks()[0]; at.Secret != "second" || len(at.Events) != len(c.events)-1 {
				t.Errorf("the host has %+v", at)
			}
			for range 2 { // the second time it is already deleted
				if err := c.h.Unsubscribe(t.Context(), c.namespace, made.ID); err != nil {
					t.Error(err)
				}
			}
			if len(c.hooks()) != 0 {
				t.Error("the webhook is still there")
			}
			if _, err := c.h.UpdateWebhook(t.Context(), c.namespace, made.ID, hook); !host.Is(err, host.NotFound) {
				t.Errorf("change of a webhook that is gone: %v", err)
			}
		})
	}
}

func TestReviewThreads(t *testing.T) {
	gitHub, gitLab, azure := hosttest.NewGitHub(t), hosttest.NewGitLab(t), hosttest.NewAzure(t)
	first := hosttest.Comment{ID: 100, Author: "palisade", Body: "SQL injection", Path: "app/db.py", Line: 42}
	answer := hosttest.Comment{ID: 101, ReplyTo: 100, Author: "grace", Body: "/fp"}
	gitHub.Comments, gitHub.Writers = []hosttest.Comment{first, answer}, []string{"grace"}
	gitLab.Comments, gitLab.Writers = []hosttest.Comment{first, answer}, []string{"grace"}
	azure.Comments, azure.Writers = []hosttest.Comment{first, answer}, []string{"grace"}
	azure.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/tools/web"}}
	for name, c := range map[string]struct {
		h                        host.Host
		repository, thread, root string
	}{
		"github": {open(t, enterprise, gitHub.URL, gitHub.Token), "acme/web", "101", "100"},
		"gitlab": {open(t, selfManaged, gitLab.URL, gitLab.Token), "acme/platform/api", hosttest.Discussion, hosttest.Discussion},
		"azure":  {open(t, azureDevOps, azure.URL, azure.Token), "acme/tools/web", hosttest.AzureThread, hosttest.AzureThread},
	} {
		root, err := c.h.ReviewThread(t.Context(), c.repository, 17, c.thread)
		if err != nil || root.ID != c.root || root.Author != "palisade" || root.Body != "SQL injection" || root.Path != "app/db.py" || root.Line != 42 || root.URL == "" {
			t.Errorf("%s: thread %+v, %v", name, root, err)
		}
		if err := c.h.ReplyToReviewComment(t.Context(), c.repository, 17, root.ID, "Ignored as a false positive."); err != nil {
			t.Errorf("%s: reply: %v", name, err)
		}
		for login, want := range map[string]bool{"grace": true, "mallory": false} {
			if got, err := c.h.CanWrite(t.Context(), c.repository, login); err != nil || got != want {
				t.Errorf("%s: %s may write: %v, %v", name, login, got, err)
			}
		}
		pull, err := c.h.PullRequest(t.Context(), c.repository, 17)
		if err != nil || pull.Number != 17 || pull.Open || !pull.Merged || pull.Head != "fix/login" || pull.Base != "main" || pull.URL == "" {
			t.Errorf("%s: %+v, %v", name, pull, err)
		}
	}
	if replies := gitHub.Replies(100); len(replies) != 2 || replies[1].Body != "Ignored as a false positive." {
		t.Errorf("GitHub has %+v", replies)
	}
	if last := azure.Comments[len(azure.Comments)-1]; last.Body != "Ignored as a false positive." {
		t.Errorf("Azure DevOps has %+v", last)
	}
	if last := gitLab.Comments[len(gitLab.Comments)-1]; last.Body != "Ignored as a false positive." {
		t.Errorf("GitLab has %+v", last)
	}
}
