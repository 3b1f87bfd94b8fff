package scans_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/pullrequestfeedback"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// reviewed is a project at a fake host whose pull requests get feedback.
type reviewed struct {
	*apitest.Server
	gitHub  bool
	project string
	host    *hosttest.Server
	set     func(number int64, of hosttest.Request)
}

// reviewedFiles are the files that pull requests change. Azure DevOps says so, the other hosts refuse other lines.
var reviewedFiles = []string{"a.go", "b.go", "c.go", "d`e.go", "f.go", "we|rd`.go", "src/a.go => d.go"}

// eachReviewed tests with each kind of host, on each database. A policy blocks new findings.
func eachReviewed(t *testing.T, test func(t *testing.T, r *reviewed)) {
	for _, kind := range []string{"GitHub", "GitLab", "Azure"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
				s := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow = "127.0.0.1" })
				r := &reviewed{Server: s, gitHub: kind == "GitHub"}
				switch kind {
				case "GitHub":
					h := hosttest.NewGitHub(t)
					h.PullRequests = map[int64]hosttest.Request{}
					r.connect(t, "acme/web", "SCM_TYPE_GITHUB_ENTERPRISE", "acme", &h.Server, "/acme/web")
					r.set = func(number int64, of hosttest.Request) { h.SetRequest(h.PullRequests, number, of) }
				case "Azure":
					h := hosttest.NewAzure(t)
					h.PullRequests = map[int64]hosttest.Request{}
					r.connect(t, "acme/tools/web", "SCM_TYPE_AZURE_DEVOPS", "acme/tools", &h.Server, "/acme/tools/_git/web")
					r.set = func(number int64, of hosttest.Request) {
						of.Files = reviewedFiles
						h.SetRequest(h.PullRequests, number, of)
					}
				default:
					h := hosttest.NewGitLab(t)
					h.MergeRequests = map[int64]hosttest.Request{}
					r.connect(t, "acme/platform/api", "SCM_TYPE_GITLAB_SELFMANAGED", "acme/platform", &h.Server, "/acme/platform/api")
					r.set = func(number int64, of hosttest.Request) { h.SetRequest(h.MergeRequests, number, of) }
				}
				test(t, r)
			})
		})
	}
}

// connect connects the host, binds a project with one finding on its default branch, and turns feedback on.
func (r *reviewed) connect(t *testing.T, project, kind, namespace string, h *hosttest.Server, path string) {
	t.Helper()
	r.project, r.host = project, h
	r.Body(t, r.Token, http.MethodPost, fmt.Sprintf("/api/scm/deployments/%d/configs", r.DeploymentID),
		fmt.Sprintf(`{"type":%q,"namespace":%q,"baseUrl":%q,"accessToken":%q}`, kind, namespace, h.URL, h.Token), http.StatusCreated)
	newScanner(r.Server).block(t, noNew())
	r.upload(t, "main", lint(t, "a.go"))
	newScanner(r.Server).change(t, fmt.Sprintf("UPDATE projects SET repository_url = '%s', bound_by = 'sync' WHERE name = '%s'", h.URL+path, project))
	r.settings(t, `{"settings":{"statuses":true,"comments":true}}`, http.StatusOK)
}

func (r *reviewed) settings(t *testing.T, body string, code int) string {
	t.Helper()
	return r.Body(t, r.Token, http.MethodPatch, fmt.Sprintf("/api/v1/deployments/%d/pull-request-feedback", r.DeploymentID), body, code)
}

func (r *reviewed) upload(t *testing.T, ref string, report []byte, parameters ...string) {
	t.Helper()
	r.Upload(t, r.project, ref, report, parameters...)
}

// request uploads a report of a pull request's commit.
func (r *reviewed) request(t *testing.T, number int, commit string, files ...string) {
	t.Helper()
	r.upload(t, fmt.Sprintf("refs/pull/%d/merge", number), lint(t, files...), "commit", commit)
}

// statuses waits for the statuses of a commit, as "name state text".
func (r *reviewed) statuses(t *testing.T, commit string, want ...string) {
	t.Helper()
	states := strings.NewReplacer("failed", "failure", "succeeded", "success") // the words of the hosts differ
	var got []string
	defer func() {
		if t.Failed() {
			t.Logf("statuses of %s: %q, want %q", commit, got, want)
		}
	}()
	apitest.Eventually(t, "the commit has its statuses", func() bool {
		got = nil
		for _, s := range r.host.Statuses(commit) {
			got = append(got, s.Name+" "+states.Replace(s.State)+" "+s.Text)
		}
		return strings.Join(got, "\n") == strings.Join(want, "\n")
	})
}

// settled waits for the jobs of feedback.
func (r *reviewed) settled(t *testing.T) {
	t.Helper()
	reader, _ := r.Store.DB()
	apitest.Eventually(t, "the jobs of feedback", func() bool {
		var n int
		err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM river_job WHERE kind LIKE '%_pull_request_feedback' AND finalized_at IS NULL").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
}

// note waits until a comment has all texts, and returns it.
func (r *reviewed) note(t *testing.T, texts ...string) (body string) {
	t.Helper()
	apitest.Eventually(t, fmt.Sprintf("a comment has %q", texts), func() bool {
		for _, note := range r.host.Notes() {
			all := true
			for _, text := range texts {
				all = all && strings.Contains(note.Body, text)
			}
			if all {
				body = note.Body
				return true
			}
		}
		return false
	})
	return body
}

// problem waits for what the page of a pull request says about the last try.
func (r *reviewed) problem(t *testing.T, number int64, want string) {
	t.Helper()
	apitest.Eventually(t, "the problem is "+want, func() bool {
		request := &scansv1.GetPullRequestRequest{DeploymentId: r.DeploymentID, Project: r.project, Number: number}
		got, err := scansv1.NewPullRequestsServiceClient(r.Conn).GetPullRequest(r.Context(t, r.Token), request)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(got.GetFeedback().GetProblem(), want) && (want != "" || got.GetFeedback().GetProblem() == "")
	})
}

func (r *reviewed) decide(t *testing.T, state string, files ...string) {
	t.Helper()
	ids := r.Store.Reader.Finding.Query().Where(finding.RefHasPrefix("refs/pull/"), finding.FilePathIn(files...)).IDsX(r.System(t))
	list := strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ",")
	body := fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%s],"new_triage_state":%q,"new_note":"because"}`, list, state)
	r.Body(t, r.Token, http.MethodPost, "/api/v1/deployments/acme/triage", body, http.StatusOK)
}

var (
	commitB = strings.Repeat("b", 40)
	commitC = strings.Repeat("c", 40)
)

// TestPullRequestFeedback tells the story of a pull request: it is blocked, decided about, fixed and merged.
func TestPullRequestFeedback(t *testing.T) {
	t.Parallel()
	eachReviewed(t, func(t *testing.T, r *reviewed) {
		r.Body(t, r.Token, http.MethodPost, fmt.Sprintf("/api/deployments/%d/scm_comment_product_content", r.DeploymentID),
			`{"reviewCommentProductContent":{"contentType":"REVIEW_COMMENT_CONTENT_TYPE_ADDENDUM","content":"Ask **#appsec**.","productContent":{"productType":"PRODUCT_SAST"}}}`, http.StatusOK)
		r.set(7, hosttest.Request{State: "open", Commit: commitB})
		r.request(t, 7, commitB, "a.go", "b.go", "we|rd`.go")
		r.statuses(t, commitB, "Palisade failure 2 new findings; blocked by No new", "Palisade: No new failure blocks: 2 findings")
		body := r.note(t, "this pull request is blocked", "**Blocked** by `No new`: 2 findings", "| high | [`rule-b.go`](", "`b.go:3` | blocks |", "Ask **#appsec**.")
		if !strings.Contains(body, "`we\\|rd'.go:3`") || strings.Contains(body, "a.go:3") {
			t.Errorf("comment %s", body)
		}
		for _, s := range r.host.Statuses(commitB) {
			if !strings.Contains(s.URL, "/console/acme/pull-requests?number=7&project=") {
				t.Errorf("status %+v", s)
			}
		}
		r.settled(t)
		written := len(r.host.Requests())
		r.request(t, 7, commitB, "a.go", "b.go", "we|rd`.go")
		r.settled(t)
		for _, request := range r.host.Requests()[written:] {
			if !strings.HasPrefix(request, "GET ") {
				t.Errorf("the same again: %s", request)
			}
		}
		r.decide(t, "ignored", "b.go", "we|rd`.go")
		r.statuses(t, commitB, "Palisade success no new findings", "Palisade: No new success blocks nothing")
		r.note(t, "Palisade: no new findings", "Ignored by people: 2")
		r.decide(t, "reopened", "b.go")
		r.statuses(t, commitB, "Palisade failure 1 new finding; blocked by No new", "Palisade: No new failure blocks: 1 finding")

		r.set(7, hosttest.Request{State: "open", Commit: commitC})
		r.request(t, 7, commitC, "a.go", "we|rd`.go")
		r.statuses(t, commitC, "Palisade success no new findings", "Palisade: No new success blocks nothing")
		r.note(t, "Palisade: no new findings", "Fixed here: 1", "Ignored by people: 1")
		if n := len(r.host.Notes()); n != 1 {
			t.Errorf("%d comments, want one that was edited", n)
		}
		got := pullRequestOf(t, r.Server, &scansv1.GetPullRequestRequest{Project: r.project, Number: 7})
		if f := got.GetFeedback(); got.GetFixed() != 1 || f.GetCommit() != commitC || len(f.GetStatuses()) != 2 || f.GetCommentId() == "" || f.GetProblem() != "" || !f.GetAt().IsValid() {
			t.Errorf("%v", got)
		}
		r.set(7, hosttest.Request{State: "merged"})
		r.decide(t, "reopened", "we|rd`.go")
		apitest.Eventually(t, "the pull request is known to be closed", func() bool {
			return r.Store.Reader.PullRequestFeedback.Query().Where(pullrequestfeedback.Closed(true)).ExistX(r.System(t))
		})
		r.statuses(t, commitC, "Palisade success no new findings", "Palisade: No new success blocks nothing")
	})
}

// TestFeedbackAtDifficultHosts: nothing is written twice, nowhere else, and what the host refuses is said.
func TestFeedbackAtDifficultHosts(t *testing.T) {
	t.Parallel()
	eachReviewed(t, func(t *testing.T, r *reviewed) {
		r.set(7, hosttest.Request{State: "open", Commit: commitB})
		r.host.AddNote("<!-- palisade:pull-request=guess -->")
		r.host.LoseNote()
		r.request(t, 7, commitB, "a.go", "b.go")
		r.note(t, "this pull request is blocked")
		r.problem(t, 7, "")
		r.decide(t, "ignored", "b.go")
		r.note(t, "Palisade: no new findings")
		if notes := r.host.Notes(); len(notes) != 2 || notes[0].Body != "<!-- palisade:pull-request=guess -->" {
			t.Errorf("comments %+v", notes)
		}
		r.host.DropNotes()
		r.decide(t, "reopened", "b.go")
		r.note(t, "this pull request is blocked")

		r.set(7, hosttest.Request{State: "open", Commit: commitC})
		r.request(t, 7, commitB, "a.go", "b.go", "d.go")
		r.problem(t, 7, "no status is set until that commit is scanned")
		r.statuses(t, commitC)

		r.set(8, hosttest.Request{State: "open", Commit: commitC})
		r.host.Answer(hosttest.Status(http.StatusForbidden, `{"message":"Resource not accessible by personal access token"}`))
		r.request(t, 8, commitC, "a.go", "b.go")
		r.problem(t, 8, "the access token may not do this")
		r.host.Answer(nil)
		r.request(t, 8, commitC, "a.go", "b.go")
		r.statuses(t, commitC, "Palisade failure 1 new finding; blocked by No new", "Palisade: No new failure blocks: 1 finding")
		r.problem(t, 8, "")
	})
}

// TestFeedbackSettings: feedback is off by default, and each part is turned on by itself.
func TestFeedbackSettings(t *testing.T) {
	t.Parallel()
	eachReviewed(t, func(t *testing.T, r *reviewed) {
		r.settings(t, `{"settings":{}}`, http.StatusBadRequest)
		r.settings(t, `{}`, http.StatusBadRequest)
		if body := r.settings(t, `{"settings":{"comments":false}}`, http.StatusOK); !strings.Contains(body, `"statuses":true`) || !strings.Contains(body, `"comments":false`) {
			t.Errorf("settings %s", body)
		}
		r.set(7, hosttest.Request{State: "open", Commit: commitB})
		r.request(t, 7, commitB, "a.go", "b.go")
		r.statuses(t, commitB, "Palisade failure 1 new finding; blocked by No new", "Palisade: No new failure blocks: 1 finding")
		r.settings(t, `{"settings":{"statuses":false}}`, http.StatusOK)
		r.settled(t)
		before := len(r.host.Requests())
		r.decide(t, "ignored", "b.go")
		r.settled(t)
		for _, request := range r.host.Requests()[before:] { // other jobs ask the host whether pull requests are open
			if !strings.HasPrefix(request, "GET ") {
				t.Errorf("turned off: %s", request)
			}
		}
		if notes := r.host.Notes(); len(notes) > 0 {
			t.Errorf("turned off: comments %+v", notes)
		}
	})
}
