package findings_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/storetest"
)

// Triage of thousands of findings is not quadratic. After some decisions about single findings, PostgreSQL would reuse
// their generic plans, which compare each id with each row, and two lists of ids in one condition with each other.
// 100,000 findings then took more than a minute.
func TestTriageOfManyFindingsIsNotQuadratic(t *testing.T) {
	database := storetest.Postgres(t)
	s, seen := apitest.StartRecorded(t, func(c *config.Config) { c.Database = database })
	l := seedForPlans(t, s)
	ids, err := s.Store.Reader.Finding.Query().Where(finding.DeploymentID(l.DeploymentID), finding.IssueType("sast")).Limit(1000).IDs(s.System(t))
	if err != nil || len(ids) != 1000 {
		t.Fatalf("%d findings, %v", len(ids), err)
	}
	for name, body := range map[string]map[string]any{
		"by id":     {"issue_type": "sast", "issue_ids": ids, "new_triage_state": "reviewing"},
		"by filter": {"issue_type": "sast", "new_triage_state": "fixing"},
	} {
		requirePlanned(t, s, seen, name, body)
	}
}

func requirePlanned(t *testing.T, s *apitest.Server, seen *apitest.Statements, name string, request map[string]any) {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	seen.Take("")
	if answer := s.Do(t, s.Token, http.MethodPost, triagePath, string(body)); answer.Status != http.StatusOK {
		t.Fatalf("%s: %d %s", name, answer.Status, answer.Body)
	}
	statements := seen.Take("/palisade.findings.v1.TriageService/BulkTriage")
	first := func(text string) int {
		return slices.IndexFunc(statements, func(s apitest.Statement) bool { return strings.Contains(s.Text, text) })
	}
	if plan, record := first("force_custom_plan"), first("INSERT INTO finding_events"); plan < 0 || record < plan {
		t.Errorf("%s: the events (statement %d) are written by a plan for one finding (custom plans from %d)", name, record, plan)
	}
	for _, statement := range statements {
		if n := strings.Count(statement.Text, `"findings"."id" = ANY(`); n > 1 {
			t.Errorf("%s: %d lists of ids in one condition: %s", name, n, statement.Text)
		}
	}
}
