package export_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/triagechange"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// reported is a report of one rule.
func reported(rule, file string) []byte {
	return fmt.Appendf(nil, `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"acme-scan"}},"results":[{"ruleId":%q,"level":"error","message":{"text":"bad"},
		"locations":[{"physicalLocation":{"artifactLocation":{"uri":%q},"region":{"startLine":7,"snippet":{"text":%q}}}}]}]}]}`, rule, file, file+"()")
}

// authors are the decisions of a SARIF export, each as "ref rule reason author".
func authors(t testing.TB, s *apitest.Server, of apitest.Tenant) string {
	t.Helper()
	var file struct {
		Runs []struct {
			Properties struct {
				Ref string `json:"ref"`
			} `json:"properties"`
			Results []struct {
				Rule         string `json:"ruleId"`
				Suppressions []struct {
					Properties struct {
						Reason string `json:"reason"`
						Author string `json:"author"`
					} `json:"properties"`
				} `json:"suppressions"`
			} `json:"results"`
		} `json:"runs"`
	}
	unmarshal(t, export(t, s, of, of.Token, `{"format":"EXPORT_FORMAT_SARIF"}`).text, &file)
	var list []string
	for _, run := range file.Runs {
		for _, result := range run.Results {
			for _, told := range result.Suppressions {
				list = append(list, fmt.Sprintf("%s %s %s %s", strings.TrimPrefix(run.Properties.Ref, "refs/heads/"), result.Rule, told.Properties.Reason, told.Properties.Author))
			}
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// latestOn is the id of the newest finding of a ref.
func latestOn(t testing.TB, s *apitest.Server, ref string) int64 {
	t.Helper()
	return s.Store.Reader.Finding.Query().Where(finding.Ref("refs/heads/" + ref)).Order(ent.Desc(finding.FieldID)).FirstIDX(s.System(t))
}

func ignore(t testing.TB, s *apitest.Server, token, product string, id int64, reason string) {
	t.Helper()
	s.Body(t, token, http.MethodPost, "/api/v1/deployments/"+s.Slug+"/triage",
		fmt.Sprintf(`{"issue_type":%q,"issue_ids":[%d],"new_triage_state":"ignored","new_triage_reason":%q}`, product, id, reason), http.StatusOK)
}

// undoLast undoes the latest decision.
func undoLast(t testing.TB, s *apitest.Server, token string) {
	t.Helper()
	id := s.Store.Reader.TriageChange.Query().Order(ent.Desc(triagechange.FieldID)).FirstIDX(s.System(t))
	s.Body(t, token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/findings/v2/undo/%d", s.DeploymentID, id), `{}`, http.StatusOK)
}

// TestAuthors: the author of a suppression is who made the decision in effect, however the finding got it.
func TestAuthors(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		anna, bert := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "anna"}), s.AddToken(t, s.Tenant, access.TokenSpec{Name: "bert"})
		s.Upload(t, "acme/web", "main", reported("sql", "a.go"))
		old := latestOn(t, s, "main")
		ignore(t, s, anna, "sast", old, "false_positive")
		ignore(t, s, bert, "sast", old, "acceptable_risk")
		want := func(step, want string) {
			t.Helper()
			if got := authors(t, s, s.Tenant); got != want {
				t.Errorf("%s: %q, want %q", step, got, want)
			}
		}
		want("decided twice", "main sql acceptable_risk bert")
		undoLast(t, s, bert)
		want("undone", "main sql false_positive anna")
		undoLast(t, s, anna) // the undo
		want("made again", "main sql acceptable_risk bert")
		undoLast(t, s, anna)
		s.Upload(t, "acme/web", "release/1", reported("sql", "a.go"))
		want("inherited", "main sql false_positive anna, release/1 sql false_positive anna")
		s.Upload(t, "acme/web", "main", reported("xss", "z.go"))
		s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/findings/%d/merge", s.DeploymentID, old),
			fmt.Sprintf(`{"into":"%d"}`, latestOn(t, s, "main")), http.StatusOK)
		s.Upload(t, "acme/web", "release/2", reported("xss", "z.go"))
		merged := "main xss false_positive anna, release/1 sql false_positive anna, release/2 xss false_positive anna"
		want("merged", merged)
		// An import has the same authors.
		empty := s.AddTenant(t, "empty")
		load(t, s, empty, export(t, s, s.Tenant, s.Token, ndjson).text, http.StatusOK)
		if got := authors(t, s, empty); got != merged {
			t.Errorf("imported: %q, want %q", got, merged)
		}
	})
}

// TestLateDecisions: a decision that was stored later than it was made has its author on every ref.
func TestLateDecisions(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := vulnerable("CVE-2026-1 lodash 4.17.4")
		s.Upload(t, "acme/web", "main", report)
		s.Upload(t, "acme/web", "main", []byte(`{"@context":"https://openvex.dev/ns/v0.2.0","@id":"https://acme.test/vex/1","author":"Eve","timestamp":"2026-01-02T03:04:05Z","version":1,
			"statements":[{"vulnerability":{"name":"CVE-2026-1"},"products":[{"@id":"pkg:npm/lodash@4.17.4"}],"status":"not_affected","justification":"vulnerable_code_not_present"}]}`))
		s.Upload(t, "acme/web", "release/1", report)
		want := "main CVE-2026-1 false_positive Eve, release/1 CVE-2026-1 false_positive Eve"
		if got := authors(t, s, s.Tenant); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		bert := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "bert"})
		ignore(t, s, bert, "sca", latestOn(t, s, "main"), "acceptable_risk")
		undoLast(t, s, bert)
		if got := authors(t, s, s.Tenant); got != want {
			t.Errorf("undone: %q, want %q", got, want)
		}
	})
}

// TestAuthorsInTools: a decision that a scan took over from its tool has the author there.
func TestAuthorsInTools(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		accepted := strings.Replace(string(reported("sql", "a.go")), `"level":"error"`, `"level":"error",
			"suppressions":[{"kind":"external","status":"accepted","justification":"fine","properties":{"author":"eve"}}]`, 1)
		s.Upload(t, "acme/web", "main", []byte(accepted))
		if got, want := authors(t, s, s.Tenant), "main sql  eve, main sql no_triage_reason eve"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
