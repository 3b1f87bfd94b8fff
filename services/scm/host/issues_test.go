package host_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// bothIssues runs a test on the issues of both kinds of hosts.
func bothIssues(t *testing.T, test func(t *testing.T, issues host.Issues, s *hosttest.Server, repository string)) {
	repositories := func(name string) []hosttest.Repository {
		return []hosttest.Repository{
			{ID: 1, Name: name, Visibility: "private"}, {ID: 2, Name: "acme/other"}, {ID: 3, Name: "acme/old", Archived: true},
		}
	}
	open := func(t *testing.T, kind scmv1.ScmType, s *hosttest.Server) host.Issues {
		issues, err := host.OpenIssues(kind, s.URL, s.Token, client(t, egress.Limits{Timeout: time.Minute, MaxRedirects: 3}))
		if err != nil {
			t.Fatal(err)
		}
		return issues
	}
	t.Run("github", func(t *testing.T) {
		s := hosttest.NewGitHub(t)
		s.Repositories = repositories("acme/web")
		test(t, open(t, enterprise, &s.Server), &s.Server, "acme/web")
	})
	t.Run("gitlab", func(t *testing.T) {
		s := hosttest.NewGitLab(t)
		s.Repositories = repositories("acme/platform/api.v2")
		test(t, open(t, selfManaged, &s.Server), &s.Server, "acme/platform/api.v2")
	})
}

func TestCreatedIssue(t *testing.T) {
	bothIssues(t, func(t *testing.T, issues host.Issues, s *hosttest.Server, repository string) {
		draft := host.IssueDraft{Title: "Leak", Body: "**Text**", Labels: []string{"security", "leak"}}
		issue, err := issues.CreateIssue(t.Context(), repository, draft)
		if err != nil {
			t.Fatal(err)
		}
		stored := s.Issues()[0]
		if issue.Repository != repository || issue.Number != stored.Number || issue.ID != fmt.Sprint(stored.ID) || !issue.Open ||
			!strings.HasPrefix(issue.URL, s.URL+"/"+repository+"/") {
			t.Errorf("issue %+v", issue)
		}
		if stored.Title != "Leak" || stored.Body != "**Text**" || !slices.Equal(stored.Labels, []string{"security", "leak"}) ||
			stored.Confidential != strings.HasPrefix(t.Name(), "TestCreatedIssue/gitlab") {
			t.Errorf("stored %+v", stored)
		}
		if err := issues.SetIssueOpen(t.Context(), repository, issue.Number, false); err != nil {
			t.Fatal(err)
		}
		if reason := s.Issues()[0].Reason; strings.HasSuffix(t.Name(), "github") && reason != "completed" {
			t.Errorf("closed with the reason %q", reason)
		}
		if _, err := issues.CreateIssue(t.Context(), "acme/nothing", host.IssueDraft{Title: "x"}); !host.Is(err, host.NotFound) {
			t.Errorf("no repository: %v", err)
		}
		if _, err := issues.Issue(t.Context(), repository, 9999); !host.Is(err, host.NotFound) {
			t.Errorf("no issue: %v", err)
		}
		if _, err := issues.CreateIssue(t.Context(), repository, host.IssueDraft{}); !host.Is(err, host.Refused) {
			t.Errorf("no title: %v", err)
		}
	})
}

// TestFindIssue: closed ones count, earlier ones and pull requests do not, and the search ends.
func TestFindIssue(t *testing.T) {
	bothIssues(t, func(t *testing.T, issues host.Issues, s *hosttest.Server, repository string) {
		since := time.Now()
		s.AddIssue(hosttest.Issue{Repository: repository, Title: "Earlier", Body: "marker-1", Created: since.Add(-time.Hour)})
		s.AddIssue(hosttest.Issue{Repository: "acme/other", Title: "Elsewhere", Body: "marker-2", Created: since})
		if strings.HasSuffix(t.Name(), "github") {
			s.AddIssue(hosttest.Issue{Repository: repository, Title: "Change", Body: "marker-3", PullRequest: true, Created: since})
		}
		closed := s.AddIssue(hosttest.Issue{Repository: repository, Title: "Leak", Body: "a marker-4 b", Created: since})
		s.SetIssueOpen(repository, closed.Number, false)
		for i := range 250 {
			s.AddIssue(hosttest.Issue{Repository: repository, Title: "Later", Body: "text", Created: since.Add(time.Duration(i) * time.Second)})
		}
		for _, none := range []string{"marker-1", "marker-2", "marker-3"} {
			if issue, err := issues.FindIssue(t.Context(), repository, none, since); err != nil || issue != (host.Issue{}) {
				t.Errorf("%s: %+v, %v", none, issue, err)
			}
		}
		if issue, err := issues.FindIssue(t.Context(), repository, "marker-4", since); err != nil || issue.Number != closed.Number || issue.Open {
			t.Errorf("sixth page: %+v, %v", issue, err)
		}
		before := len(s.Requests())
		for i := range 1000 {
			s.AddIssue(hosttest.Issue{Repository: repository, Title: "Later", Body: "text", Created: since.Add(time.Duration(i) * time.Minute)})
		}
		if issue, err := issues.FindIssue(t.Context(), repository, "marker-4", since); err != nil || issue != (host.Issue{}) {
			t.Errorf("beyond the limit: %+v, %v", issue, err)
		}
		if n := len(s.Requests()) - before; n != 10 {
			t.Errorf("%d requests, want 10", n)
		}
	})
}

func TestTransferredIssue(t *testing.T) {
	bothIssues(t, func(t *testing.T, issues host.Issues, s *hosttest.Server, repository string) {
		old := s.AddIssue(hosttest.Issue{Repository: repository, Title: "Leak"})
		moved := s.TransferIssue(repository, old.Number, "acme/other")
		issue, err := issues.Issue(t.Context(), repository, old.Number)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(t.Name(), "gitlab") {
			if issue.Open || issue.Number != old.Number {
				t.Errorf("a moved issue is closed: %+v", issue)
			}
			return
		}
		if issue.Repository != "acme/other" || issue.Number != moved.Number || !issue.Open {
			t.Errorf("issue %+v, want %+v", issue, moved)
		}
		// A client turns a write into a read when it follows the redirect.
		if err := issues.CommentOnIssue(t.Context(), repository, old.Number, "Fixed."); err != nil {
			t.Error(err)
		}
		if err := issues.SetIssueOpen(t.Context(), repository, old.Number, false); err != nil {
			t.Error(err)
		}
		if got := s.Issues()[0]; got.Open || !slices.Equal(got.Comments, []string{"Fixed."}) {
			t.Errorf("stored %+v", got)
		}
	})
}

func TestCheckIssues(t *testing.T) {
	bothIssues(t, func(t *testing.T, issues host.Issues, s *hosttest.Server, repository string) {
		if err := issues.CheckIssues(t.Context(), repository); err != nil {
			t.Error(err)
		}
		if err := issues.CheckIssues(t.Context(), "acme/nothing"); !host.Is(err, host.NotFound) {
			t.Errorf("no repository: %v", err)
		}
		if err := issues.CheckIssues(t.Context(), "acme/old"); !host.Is(err, host.Refused) || !strings.Contains(err.Error(), "archived") {
			t.Errorf("archived: %v", err)
		}
		s.DisableIssues(true)
		err := issues.CheckIssues(t.Context(), repository)
		if !host.Is(err, host.Unsupported) || !strings.Contains(err.Error(), "issues are disabled") {
			t.Errorf("disabled: %v", err)
		}
		_, err = issues.CreateIssue(t.Context(), repository, host.IssueDraft{Title: "x"})
		if strings.HasSuffix(t.Name(), "github") && (!host.Is(err, host.Unsupported) || !strings.Contains(err.Error(), "issues are disabled")) {
			t.Errorf("create: %v", err)
		}
		if !host.Is(err, host.Unsupported) && !host.Is(err, host.Forbidden) {
			t.Errorf("create: %v", err)
		}
	})
	s := hosttest.NewGitLab(t)
	s.Repositories, s.Scopes = []hosttest.Repository{{ID: 1, Name: "acme/api"}}, []string{"read_api"}
	issues, err := host.OpenIssues(selfManaged, s.URL, s.Token, client(t, egress.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := issues.CheckIssues(t.Context(), "acme/api"); !host.Is(err, host.Forbidden) || !strings.Contains(err.Error(), `"api"`) {
		t.Errorf("a token that reads: %v", err)
	}
}

// TestPullRequestIsNoIssue: GitHub numbers them together.
func TestPullRequestIsNoIssue(t *testing.T) {
	s := hosttest.NewGitHub(t)
	s.Repositories = []hosttest.Repository{{ID: 1, Name: "acme/web"}}
	number := s.AddIssue(hosttest.Issue{Repository: "acme/web", PullRequest: true}).Number
	issues, err := host.OpenIssues(enterprise, s.URL, s.Token, client(t, egress.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = issues.Issue(t.Context(), "acme/web", number)
	if !host.Is(err, host.NotFound) || !strings.Contains(err.Error(), "pull request") {
		t.Errorf("got %v", err)
	}
}
