package scans_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// pullRequestOf reads a pull request over both wires, which agree.
func pullRequestOf(t testing.TB, s *apitest.Server, r *scansv1.GetPullRequestRequest) *scansv1.GetPullRequestResponse {
	t.Helper()
	r.DeploymentId = s.DeploymentID
	query := url.Values{"project": {r.GetProject()}}
	if r.GetNumber() != 0 {
		query.Set("number", fmt.Sprint(r.GetNumber()))
	}
	if r.GetRef() != "" {
		query.Set("ref", r.GetRef())
	}
	out, err := scansv1.NewPullRequestsServiceClient(s.Conn).GetPullRequest(s.Context(t, s.Token), r)
	if err != nil {
		t.Fatal(err)
	}
	apitest.Same(t, out, s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/pull-request?%s", s.DeploymentID, query.Encode())))
	return out
}

// shownFindings are the findings of a pull request: + for added ones, path, status, and what blocks them.
func shownFindings(r *scansv1.GetPullRequestResponse) (list []string) {
	for _, f := range r.GetFindings() {
		sign := "="
		if f.GetAdded() {
			sign = "+"
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s:%d %s %s %s", sign, f.GetPath(), f.GetLine(), f.GetSeverity(), f.GetStatus(), strings.Join(f.GetBlockedBy(), ","))))
	}
	return list
}

// lint is a report of a linter with one error for each file.
func lint(t testing.TB, files ...string) []byte {
	t.Helper()
	r := run{Tool: "lint", Version: "1.4"}
	for _, file := range files {
		r.Results = append(r.Results, result{Rule: "rule-" + file, File: file, Line: 3, Code: "bad " + file, Level: "error"})
	}
	return sarifOf(t, r)
}

// TestPullRequest: the page shows what a pull request adds and what blocks it, as its upload was answered; a decision
// counts at once.
func TestPullRequest(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		newScanner(s).block(t, noNew())
		upload(t, s, "main", lint(t, "a.go"))
		answer := upload(t, s, "refs/pull/7/merge", lint(t, "a.go", "b.go", "c.go"), "repo_url", "https://github.com/acme/web", "commit", strings.Repeat("b", 40))
		if !answer.GetBlocked() || !strings.HasSuffix(answer.GetUrl(), "/console/acme/pull-requests?number=7&project=acme%2Fweb") {
			t.Errorf("%v", answer)
		}
		if other := upload(t, s, "main", lint(t, "a.go")); other.GetUrl() != "" {
			t.Errorf("a branch has the page %s", other.GetUrl())
		}
		seven := &scansv1.GetPullRequestRequest{Project: "acme/web", Number: 7}
		got := pullRequestOf(t, s, seven)
		wantList(t, "findings", shownFindings(got), "+ b.go:3 high open No new", "+ c.go:3 high open No new")
		p, scan := got.GetPullRequest(), got.GetScans()[0]
		if p.GetUrl() != "https://github.com/acme/web/pull/7" || p.GetNumber() != 7 || p.GetRef() != "refs/pull/7/merge" || p.GetScanId() != answer.GetScanId() {
			t.Errorf("%v", p)
		}
		if len(got.GetScans()) != 1 || scan.GetTool() != "lint" || scan.GetToolVersion() != "1.4" || !scan.GetBlocked() || scan.GetBlockReason() != answer.GetBlockReason() ||
			scan.GetBaseRef() != mainRef || scan.GetBaseScanId() != 0 {
			t.Errorf("%v", got.GetScans())
		}
		if b := got.GetBlockers(); !got.GetBlocked() || len(b) != 1 || b[0].GetPolicySlug() != "no-new" || b[0].GetFindings() != 2 || got.GetAdded() != 2 {
			t.Errorf("%v", got)
		}
		ids := s.Store.Reader.Finding.Query().Where(finding.Ref("refs/pull/7/merge"), finding.FilePath("b.go")).IDsX(s.System(t))
		triage := fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":"ignored","new_triage_reason":"false_positive"}`, ids[0])
		s.Body(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage", triage, http.StatusOK)
		got = pullRequestOf(t, s, seven)
		wantList(t, "one is ignored", shownFindings(got), "+ c.go:3 high open No new", "+ b.go:3 high ignored")
		if got.GetAdded() != 1 || got.GetIgnored() != 1 || got.GetBlockers()[0].GetFindings() != 1 {
			t.Errorf("%v", got)
		}
		upload(t, s, "refs/pull/7/merge", lint(t, "a.go", "b.go"))
		got = pullRequestOf(t, s, seven)
		wantList(t, "one is fixed", shownFindings(got), "+ b.go:3 high ignored")
		if got.GetBlocked() || len(got.GetBlockers()) > 0 || got.GetScans()[0].GetBlocked() {
			t.Errorf("%v", got)
		}
		by := pullRequestOf(t, s, &scansv1.GetPullRequestRequest{Project: "acme/web", Ref: "refs/pull/7/merge"})
		wantList(t, "by its ref", shownFindings(by), shownFindings(got)...)
	})
}

// TestPullRequestOfScanners: the page says the same as the answer to the scanner, whatever the CI system calls the ref.
func TestPullRequestOfScanners(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		policy := noNew()
		policy.Filters.Conditions = policy.Filters.Conditions[:1]
		c.block(t, policy)
		r := &situationRun{t: t, scannerClient: c, project: "acme/pulls", day: 1}
		r.full(found(runEval), commit("a"))
		topic := func(body object) {
			with("refs/heads/topic", "project_metadata", "branch")(body)
			with("12", "project_metadata", "pull_request_id")(body)
			with("Call exec", "project_metadata", "pull_request_title")(body)
			with("mia", "project_metadata", "pull_request_author_username")(body)
		}
		answer := r.diff(found(runExec).searching("app/run.py"), commit("b"), base("a"), topic)
		got := pullRequestOf(t, s, &scansv1.GetPullRequestRequest{Project: "acme/pulls", Number: 12})
		if p := got.GetPullRequest(); p.GetRef() != "refs/heads/topic" || p.GetTitle() != "Call exec" || p.GetAuthor() != "mia" {
			t.Errorf("%v", p)
		}
		ids, _ := answer["app_blocking_match_based_ids"].([]any)
		if n := len(got.GetFindings()); n != 1 || len(ids) != 1 || !got.GetFindings()[0].GetAdded() || got.GetBlockers()[0].GetFindings() != 1 ||
			fmt.Sprint(got.GetFindings()[0].GetBlockedBy()) != "[No new rules in mode block]" ||
			got.GetScans()[0].GetBlockReason() != answer["app_block_reason"] || got.GetScans()[0].GetBaseScanId() == 0 || got.GetScans()[0].GetIsFullScan() {
			t.Errorf("%v\nanswer %v", got, answer)
		}
		r.diff(found().searching("app/run.py"), commit("c"), base("a"), topic)
		if got = pullRequestOf(t, s, &scansv1.GetPullRequestRequest{Project: "acme/pulls", Number: 12}); got.GetBlocked() || len(got.GetFindings()) > 0 {
			t.Errorf("after the fix: %v", got)
		}
	})
}

// TestListPullRequests: each pull request is listed once, the latest scan first, by page and project.
func TestListPullRequests(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, ref := range []string{"main", "refs/pull/7/merge", "refs/pull/8/head", "refs/merge-requests/9/head", "refs/pull/7/merge"} {
			upload(t, s, ref, lint(t, "a.go"))
		}
		s.Upload(t, "acme/api", "refs/pull/7/merge", lint(t, "a.go"))
		list := func(query string) (numbers []string, cursor string) {
			out := &scansv1.ListPullRequestsResponse{}
			body := s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/pull-requests?%s", s.DeploymentID, query))
			if err := protojson.Unmarshal([]byte(body), out); err != nil {
				t.Fatal(err)
			}
			for _, p := range out.GetPullRequests() {
				numbers = append(numbers, fmt.Sprint(p.GetProject(), " ", p.GetNumber()))
			}
			return numbers, out.GetCursor()
		}
		all, end := list("")
		wantList(t, "all", all, "acme/api 7", "acme/web 7", "acme/web 9", "acme/web 8")
		first, cursor := list("limit=3")
		rest, last := list("limit=3&cursor=" + cursor)
		wantList(t, "pages", append(first, rest...), all...)
		if end != "" || last != "" || cursor == "" {
			t.Errorf("cursors %q %q %q", end, cursor, last)
		}
		web, _ := list("project=acme/web")
		wantList(t, "of a project", web, all[1:]...)
	})
}

// TestListBlockedPullRequests: the list says which pull requests failed their pipeline, until a scan of the same tool
// passes.
func TestListBlockedPullRequests(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		newScanner(s).block(t, noNew())
		upload(t, s, "main", lint(t, "a.go"), "category", "one")
		upload(t, s, "main", lint(t, "a.go"), "category", "two")
		const seven, eight = "refs/pull/7/merge", "refs/pull/8/merge"
		steps := []struct{ ref, category, files, want string }{
			{seven, "one", "a.go b.go", "7 blocked"},
			{eight, "one", "a.go", "8, 7 blocked"},
			{seven, "two", "a.go", "7 blocked, 8"},
			{seven, "one", "a.go", "7, 8"},
		}
		for _, step := range steps {
			upload(t, s, step.ref, lint(t, strings.Fields(step.files)...), "category", step.category)
			out, err := scansv1.NewPullRequestsServiceClient(s.Conn).ListPullRequests(s.Context(t, s.Token), &scansv1.ListPullRequestsRequest{DeploymentId: s.DeploymentID})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range out.GetPullRequests() {
				one := fmt.Sprint(p.GetNumber())
				if p.GetBlocked() {
					one += " blocked"
				}
				got = append(got, one)
			}
			if list := strings.Join(got, ", "); list != step.want {
				t.Errorf("%v: %s", step, list)
			}
		}
	})
}

// TestPullRequestOfOthers: other tenants and other teams see nothing, and requests name one thing.
func TestPullRequestOfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "refs/pull/7/merge", lint(t, "a.go"))
		answer := s.Upload(t, "acme/api", "refs/pull/7/merge", lint(t, "a.go"))
		mia := webReader(t, s)
		path := fmt.Sprintf("/api/v1/deployments/%d/", s.DeploymentID)
		s.Body(t, mia, http.MethodGet, path+"pull-request?project=acme/web&number=7", "", http.StatusOK)
		s.Body(t, mia, http.MethodGet, path+"pull-request?project=acme/api&number=7", "", http.StatusNotFound)
		s.Body(t, mia, http.MethodGet, path+fmt.Sprintf("scans/%v/details", at(parsed(t, answer), "scan_id")), "", http.StatusNotFound)
		if body := s.Body(t, mia, http.MethodGet, path+"pull-requests", "", http.StatusOK); strings.Contains(body, "acme/api") || !strings.Contains(body, "acme/web") {
			t.Errorf("mia sees %s", body)
		}
		s.Body(t, s.Token, http.MethodGet, path+"pull-request?project=acme/web&number=8", "", http.StatusNotFound)
		for _, query := range []string{"project=acme/web", "project=acme/web&number=7&ref=main", "number=7", "project=acme/web&number=-1"} {
			s.Body(t, s.Token, http.MethodGet, path+"pull-request?"+query, "", http.StatusBadRequest)
		}
		other := s.AddTenant(t, "globex")
		client, ctx := scansv1.NewPullRequestsServiceClient(s.Conn), s.Context(t, other.Token)
		if _, err := client.GetPullRequest(ctx, &scansv1.GetPullRequestRequest{DeploymentId: other.DeploymentID, Project: "acme/web", Number: 7}); status.Code(err) != codes.NotFound {
			t.Errorf("another deployment reads: %v", err)
		}
		if all, err := client.ListPullRequests(ctx, &scansv1.ListPullRequestsRequest{DeploymentId: other.DeploymentID}); err != nil || len(all.GetPullRequests()) > 0 {
			t.Errorf("another deployment lists: %v %v", all, err)
		}
	})
}

// TestPullRequestOfEarlierVersions: their scans have the number in the ref only.
func TestPullRequestOfEarlierVersions(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", lint(t))
		of := s.Store.Reader.Project.Query().Where(project.Name("acme/web")).OnlyX(s.System(t))
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Scan.Create().SetDeploymentID(s.DeploymentID).SetProjectID(of.ID).SetRef("refs/pull/3/merge").SetCommit("").SetStatus("SCAN_STATUS_COMPLETED").
				SetProducts(2).SetIsFullScan(true).SetMeta([]byte{}).SetStats(map[string]any{}).SetStartedAt(store.Now()).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		got := pullRequestOf(t, s, &scansv1.GetPullRequestRequest{Project: "acme/web", Number: 3})
		if got.GetPullRequest().GetNumber() != 3 || len(got.GetScans()) > 0 {
			t.Errorf("%v", got)
		}
	})
}
