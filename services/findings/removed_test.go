package findings_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apitest"
)

// removedList reads all pages of removed findings, as label: reason. The label of a seeded finding is its fingerprint.
func removedList(t *testing.T, s *apitest.Server, l *fixture, query string) string {
	t.Helper()
	labels := map[int64]string{}
	for label, id := range l.findings {
		labels[id] = label
	}
	var list []string
	for cursor := ""; ; {
		body := s.Get(t, "/api/v1/deployments/"+s.Slug+"/removed-findings?limit=2&cursor="+cursor+query)
		var page struct {
			Findings []struct {
				ID          int64
				Project     string
				Reason      string
				RuleName    string `json:"rule_name"`
				TriageState string `json:"triage_state"`
				RemovedAt   string `json:"removed_at"`
			}
			Cursor string
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil || len(page.Findings) > 2 {
			t.Fatalf("%v: %s", err, body)
		}
		for _, f := range page.Findings {
			if f.RuleName == "" || f.Project == "" || f.TriageState == "" || f.RemovedAt == "" {
				t.Errorf("%+v", f)
			}
			list = append(list, labels[f.ID]+": "+f.Reason)
		}
		if cursor = page.Cursor; cursor == "" {
			return strings.Join(list, ", ")
		}
	}
}

// TestRemovedFindings: removed findings are in their own list with the latest reason, and in no other.
func TestRemovedFindings(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
		gone := func(label, project string, more fact) fact {
			more.label, more.project, more.rule, more.state = label, project, "py.sqli", "removed"
			return more
		}
		l.seed(t, s,
			gone("a", "acme/web", fact{}), gone("b", "acme/api", fact{triage: "ignored", reason: "no_time"}), gone("c", "acme/web", fact{ref: "refs/pull/7/merge"}),
			fact{label: "open", project: "acme/web", rule: "py.sqli"}, fact{label: "fixed", project: "acme/web", rule: "py.sqli", state: "fixed"},
			gone("key", "acme/web", fact{kind: "secrets"}), gone("d", "acme/web", fact{}))
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			for _, e := range []struct{ label, from, to, reason string }{
				{"a", "open", "removed", "first"}, {"a", "removed", "open", "again"}, {"a", "open", "removed", "its file is gone"},
				{"a", "removed", "removed", "a note"}, {"c", "open", "removed", "pull request closed"},
			} {
				err := tx.FindingEvent.Create().SetDeploymentID(s.DeploymentID).SetFindingID(l.findings[e.label]).SetKind("removed").SetFromStatus(e.from).
					SetToStatus(e.to).SetReason(e.reason).SetActorKind("scan").SetActorID(1).SetAt(base).Exec(ctx)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for query, want := range map[string]string{
			"":                           "a: its file is gone, b: , c: pull request closed, d: ",
			"&project=acme/web":          "a: its file is gone, c: pull request closed, d: ",
			"&ref=refs/pull/7/merge":     "c: pull request closed",
			"&ref=main":                  "a: its file is gone, b: , d: ",
			"&ref=main&project=acme/api": "b: ",
			"&issue_type=secrets":        "key: ",
			"&issue_type=sca":            "",
		} {
			if got := removedList(t, s, l, query); got != want {
				t.Errorf("%q: %s, want %s", query, got, want)
			}
		}
		if body := s.Get(t, "/api/v1/deployments/"+s.Slug+"/findings"); strings.Count(body, `"rule_message"`) != 2 {
			t.Errorf("the list of findings has another number than two: %.600s", body)
		}
		for query, status := range map[string]int{"project=none": http.StatusNotFound, "issue_type=x": http.StatusBadRequest, "limit=0": http.StatusBadRequest, "cursor=x": http.StatusBadRequest} {
			s.Body(t, s.Token, http.MethodGet, "/api/v1/deployments/"+s.Slug+"/removed-findings?"+query, "", status)
		}
	})
}
