package scans_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/finding"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// threads waits for the review threads, as "path:line", with " resolved" if they are.
func (r *reviewed) threads(t *testing.T, want ...string) []hosttest.Thread {
	t.Helper()
	var got []string
	defer func() {
		if t.Failed() {
			t.Logf("threads %q, want %q", got, want)
		}
	}()
	apitest.Eventually(t, "the request has its threads", func() bool {
		got = nil
		for _, one := range r.host.Threads() {
			text := fmt.Sprintf("%s:%d", one.First.Path, one.First.Line)
			if one.Resolved {
				text += " resolved"
			}
			got = append(got, text)
		}
		return strings.Join(got, "\n") == strings.Join(want, "\n")
	})
	return r.host.Threads()
}

// threadID is how findings name a thread: GitHub's by its first comment.
func (r *reviewed) threadID(of hosttest.Thread) string {
	if r.gitHub {
		return fmt.Sprint(of.First.ID)
	}
	return of.ID
}

// TestLineComments tells the story of the threads of a pull request: written once, resolved when the finding is fixed
// or ignored, opened when it is back.
func TestLineComments(t *testing.T) {
	t.Parallel()
	eachReviewed(t, func(t *testing.T, r *reviewed) {
		r.settings(t, `{"settings":{"statuses":false,"comments":false,"line_comments":2}}`, http.StatusOK)
		r.settings(t, `{"settings":{"line_comments":51}}`, http.StatusBadRequest)
		r.Body(t, r.Token, http.MethodPost, fmt.Sprintf("/api/deployments/%d/scm_comment_product_content", r.DeploymentID),
			`{"reviewCommentProductContent":{"contentType":"REVIEW_COMMENT_CONTENT_TYPE_ADDENDUM","content":"Ask **#appsec**.","productContent":{"productType":"PRODUCT_SAST"}}}`, http.StatusOK)
		r.set(7, hosttest.Request{State: "open", Commit: commitB, Unchanged: []string{"b.go"}})
		r.request(t, 7, commitB, "a.go", "b.go", "c.go", "d`e.go", "f.go")
		threads := r.threads(t, "c.go:3", "d`e.go:3")
		first := r.Store.Reader.Finding.Query().Where(finding.RefHasPrefix("refs/pull/"), finding.FilePath("c.go")).OnlyX(r.System(t))
		for _, text := range []string{fmt.Sprintf("palisade:finding=%d ", first.ID), "**high** severity: `rule-c.go`", "It blocks this pull request: `No new`.",
			fmt.Sprintf("/console/acme/findings/%d)", first.ID), "Ask **#appsec**."} {
			if !strings.Contains(threads[0].First.Body, text) {
				t.Errorf("%s lacks %s", threads[0].First.Body, text)
			}
		}
		if threads[0].Commit != commitB || strings.Contains(threads[0].First.Body, "/fp") || !strings.Contains(threads[1].First.Body, "`rule-d'e.go`") {
			t.Errorf("threads %+v", threads)
		}
		r.settled(t)
		note := fmt.Sprintf(`"external_discussion_id":%q,"external_note_id":%d}`, r.threadID(threads[0]), threads[0].First.ID)
		if list := r.Get(t, "/api/v1/deployments/acme/findings?issue_type=sast&ref=refs/pull/7/merge"); strings.Count(list, note) != 1 || strings.Count(list, `"review_comments":[]`) != 3 {
			t.Errorf("findings %s", list)
		}
		issues := r.Body(t, r.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/issues", r.DeploymentID), `{"filter":{"refs":["refs/pull/7/merge"]}}`, http.StatusOK)
		if !strings.Contains(issues, fmt.Sprintf(`"allReviewThreadIds":[%q]`, r.threadID(threads[0]))) || !strings.Contains(issues, `"isInline":true`) {
			t.Errorf("issues %s", issues)
		}
		got := pullRequestOf(t, r.Server, &scansv1.GetPullRequestRequest{Project: r.project, Number: 7})
		if f := got.GetFeedback(); f.GetLineComments() != 2 || f.GetProblem() != "" || len(f.GetStatuses()) != 0 {
			t.Errorf("%v", f)
		}
		written := len(r.host.Requests())
		r.request(t, 7, commitB, "a.go", "b.go", "c.go", "d`e.go", "f.go")
		r.settled(t)
		for _, request := range r.host.Requests()[written:] {
			if !strings.HasPrefix(request, "GET ") {
				t.Errorf("the same again: %s", request)
			}
		}
		r.decide(t, "ignored", "c.go")
		r.threads(t, "c.go:3 resolved", "d`e.go:3")
		r.decide(t, "reopened", "c.go")
		r.threads(t, "c.go:3", "d`e.go:3")

		r.set(7, hosttest.Request{State: "open", Commit: commitC})
		r.settings(t, `{"settings":{"line_comments":3}}`, http.StatusOK)
		r.request(t, 7, commitC, "a.go", "b.go", "c.go")
		r.threads(t, "c.go:3", "d`e.go:3 resolved", "b.go:3")
		r.settled(t)
		r.request(t, 7, commitC, "a.go", "b.go", "c.go", "d`e.go")
		r.threads(t, "c.go:3", "d`e.go:3", "b.go:3")
	})
}

// TestLostLineComments: a comment whose answer was lost is found again, and a thread that a person deleted stays away.
func TestLostLineComments(t *testing.T) {
	t.Parallel()
	eachReviewed(t, func(t *testing.T, r *reviewed) {
		r.settings(t, `{"settings":{"statuses":false,"comments":false,"line_comments":5}}`, http.StatusOK)
		r.set(7, hosttest.Request{State: "open", Commit: commitB})
		r.host.LoseNote()
		r.request(t, 7, commitB, "a.go", "b.go", "c.go")
		r.threads(t, "b.go:3", "c.go:3")
		r.problem(t, 7, "")
		r.settled(t)
		got := pullRequestOf(t, r.Server, &scansv1.GetPullRequestRequest{Project: r.project, Number: 7})
		if got.GetFeedback().GetLineComments() != 2 {
			t.Errorf("%v", got.GetFeedback())
		}
		r.host.DropThreads()
		r.decide(t, "ignored", "b.go")
		r.settled(t)
		r.decide(t, "reopened", "b.go")
		r.settled(t)
		r.threads(t)
		r.problem(t, 7, "")
	})
}
