package scans_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

var (
	sqli = result{Rule: "sqli", File: "db.go", Code: "db.Query(q)", Line: 10}
	xss  = result{Rule: "xss", File: "web.go", Code: "w.Write(in)", Line: 20}
	weak = result{Rule: "md5", File: "hash.go", Code: "md5.Sum(b)", Line: 30}
)

func TestSameReportChangesNothing(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := sarifOf(t, run{Tool: "gosec", Results: []result{sqli, xss}})
		wantCounts(t, "first", upload(t, s, "main", report), [6]int32{2, 0, 0, 0, 0, 0})
		before := s.Get(t, "/api/v1/deployments/acme/findings")
		wantCounts(t, "again", upload(t, s, "refs/heads/main", report), [6]int32{0, 0, 2, 0, 0, 0})
		if after := s.Get(t, "/api/v1/deployments/acme/findings"); after != before {
			t.Errorf("the same report changed the findings:\n%s\n%s", before, after)
		}
		if got := kinds(t, s); !slices.Equal(got, []string{"created", "created"}) {
			t.Errorf("events %v", got)
		}
	})
}

func TestMovedLinesKeepTheFinding(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{sqli, xss}}))
		moved := sqli
		moved.Line, moved.Code = 99, "   db.Query(q)  "
		wantCounts(t, "moved", upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{moved, xss}})), [6]int32{0, 1, 1, 0, 0, 0})
		if body := s.Get(t, "/api/v1/deployments/acme/findings?rules=sqli"); !strings.Contains(body, `"line":99`) {
			t.Errorf("the finding is not where the code is now: %s", body)
		}
	})
}

func TestFixedAndReopened(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		both := sarifOf(t, run{Tool: "gosec", Results: []result{sqli, xss}})
		upload(t, s, "main", both)
		one := sarifOf(t, run{Tool: "gosec", Results: []result{xss}})
		wantCounts(t, "one is gone", upload(t, s, "main", one), [6]int32{0, 0, 1, 0, 1, 0})
		if body := s.Get(t, "/api/v1/deployments/acme/findings?status=fixed"); strings.Count(body, `"status":"fixed"`) != 1 || !strings.Contains(body, `"rule_name":"sqli"`) {
			t.Errorf("fixed: %s", body)
		}
		wantCounts(t, "it is back", upload(t, s, "main", both), [6]int32{0, 0, 1, 1, 0, 0})
		wantCounts(t, "all are gone", upload(t, s, "main", sarifOf(t, run{Tool: "gosec"})), [6]int32{0, 0, 0, 0, 2, 0})
		if got := kinds(t, s); !slices.Equal(got, []string{"created", "created", "fixed", "reopened", "fixed", "fixed"}) {
			t.Errorf("events %v", got)
		}
	})
}

// TestCoverage: a report closes only findings of the same tool and category on the same ref.
func TestCoverage(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{sqli}}, run{Tool: "eslint", Results: []result{xss}}))
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Category: "api", Results: []result{weak}}))
		upload(t, s, "dev", sarifOf(t, run{Tool: "gosec", Results: []result{sqli}}))
		for what, report := range map[string][]byte{
			"another tool":     sarifOf(t, run{Tool: "semgrep"}),
			"another category": sarifOf(t, run{Tool: "gosec", Category: "web"}),
			"a failed run":     sarifOf(t, run{Tool: "gosec", Failed: true}, run{Tool: "eslint", Failed: true}),
			"a partly failed":  sarifOf(t, run{Tool: "gosec"}, run{Tool: "gosec", Failed: true}),
		} {
			if r := upload(t, s, "main", report); r.GetFixed() != 0 {
				t.Errorf("%s closed %d findings", what, r.GetFixed())
			}
		}
		if r := upload(t, s, "feature", sarifOf(t, run{Tool: "gosec"})); r.GetFixed() != 0 {
			t.Errorf("another ref closed %d findings", r.GetFixed())
		}
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec"}))
		want := []string{"refs/heads/main  fixed fixed", "refs/heads/main  unresolved open", "refs/heads/main api unresolved open", "refs/heads/dev  unresolved open"}
		if got := statuses(t, s); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		r := upload(t, s, "main", sarifOf(t, run{Tool: "eslint"}, run{Tool: "eslint", Failed: true}))
		if !strings.Contains(strings.Join(r.GetRuns()[0].GetWarnings(), "\n"), "no finding was closed as fixed: run 1 did not succeed") {
			t.Errorf("the answer does not say why nothing was closed: %v", r.GetRuns()[0].GetWarnings())
		}
	})
}

func TestSuppressedInCode(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		muted := sqli
		muted.Suppressed = true
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{muted}}))
		if body := s.Get(t, "/api/v1/deployments/acme/findings"); !strings.Contains(body, `"triage_state":"untriaged","state":"muted","status":"ignored"`) {
			t.Errorf("suppressed: %s", body)
		}
		wantCounts(t, "no longer suppressed", upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{sqli}})), [6]int32{0, 1, 0, 0, 0, 0})
		wantCounts(t, "suppressed again", upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{muted}})), [6]int32{0, 1, 0, 0, 0, 0})
		if got := kinds(t, s); !slices.Equal(got, []string{"created", "unmuted", "muted"}) {
			t.Errorf("events %v", got)
		}
	})
}

// TestDecisionsFollowTheFinding: decisions apply on other refs when the finding appears there, and after it is fixed
// and reopened.
func TestDecisionsFollowTheFinding(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := sarifOf(t, run{Tool: "gosec", Results: []result{sqli, xss}})
		upload(t, s, "main", report)
		answer := s.Do(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage",
			`{"issue_type":"sast","rules":["sqli"],"new_triage_state":"ignored","new_triage_reason":"false_positive","new_note":"checked"}`)
		if answer.Status != 200 || answer.Body != `{"num_triaged":1,"triaged_issues":[1]}` {
			t.Fatalf("triage: %d %s", answer.Status, answer.Body)
		}
		upload(t, s, "dev", report)
		if body := s.Get(t, "/api/v1/deployments/acme/findings?ref=dev&status=ignored&triage_reasons=false_positive"); strings.Count(body, `"triage_comment":"checked"`) != 1 {
			t.Errorf("the decision did not come along: %s", body)
		}
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec"}))
		upload(t, s, "main", report)
		if body := s.Get(t, "/api/v1/deployments/acme/findings?ref=main&rules=sqli"); !strings.Contains(body, `"status":"ignored"`) {
			t.Errorf("the decision was lost when the finding came back: %s", body)
		}
	})
}

func TestRuleTextFollowsTheTool(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{sqli}}))
		wantCounts(t, "new text", upload(t, s, "main", sarifOf(t, run{Tool: "gosec", RuleText: " (2nd edition)", Results: []result{sqli}})), [6]int32{0, 0, 1, 0, 0, 0})
		if body := s.Get(t, "/api/v1/deployments/acme/findings"); !strings.Contains(body, `"message":"Rule sqli (2nd edition)"`) {
			t.Errorf("old text: %s", body)
		}
	})
}

// TestParallelUploads: eight parallel uploads give the same state and events as one.
func TestParallelUploads(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		var many []result
		for i := range 700 {
			many = append(many, result{Rule: fmt.Sprintf("rule%d", i%40), File: fmt.Sprintf("f%d.go", i), Code: "x()", Line: i + 1})
		}
		report := sarifOf(t, run{Tool: "gosec", Results: many})
		created := make([]int32, 8)
		var wait sync.WaitGroup
		for i := range created {
			wait.Go(func() { created[i] = upload(t, s, "main", report).GetCreated() })
		}
		wait.Wait()
		total := int32(0)
		for _, n := range created {
			total += n
		}
		ctx := s.System(t)
		if findings, events := s.Store.Reader.Finding.Query().CountX(ctx), s.Store.Reader.FindingEvent.Query().CountX(ctx); total != 700 || findings != 700 || events != 700 {
			t.Errorf("%v created, %d findings, %d events, want 700 of each", created, findings, events)
		}
	})
}

// TestParallelProjects: uploads of the same new rules to different projects do not disturb each other.
func TestParallelProjects(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := testdata(t, "gosec.sarif")
		var wait sync.WaitGroup
		for i := range 6 {
			wait.Go(func() { s.Upload(t, fmt.Sprintf("team/%d", i), "main", report) })
		}
		wait.Wait()
		if n := s.Store.Reader.Finding.Query().CountX(s.System(t)); n != 6*309 {
			t.Errorf("%d findings, want %d", n, 6*309)
		}
	})
}
