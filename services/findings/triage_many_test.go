package findings_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/pgtest"
)

// TestThousandsAreNotComparedEachWithEach: after some decisions about single findings, PostgreSQL would take the same plans for
// thousands, which compare such a list with every row, and two lists of one condition with each other. 100,000 findings took more
// than a minute so.
func TestThousandsAreNotComparedEachWithEach(t *testing.T) {
	database := pgtest.NewDatabase(t)
	s, seen := apitest.StartRecorded(t, func(c *services.Config) { c.Database = database })
	l := seedForPlans(t, s)
	ids, err := s.Store.Reader.Finding.Query().Where(finding.DeploymentID(l.DeploymentID), finding.IssueType("sast")).Limit(1000).IDs(s.System(t))
	if err != nil || len(ids) != 1000 {
		t.Fatalf("%d findings, %v", len(ids), err)
	}
	body, err := json.Marshal(map[string]any{"issue_type": "sast", "issue_ids": ids, "new_triage_state": "reviewing"})
	if err != nil {
		t.Fatal(err)
	}
	seen.Take("")
	if answer := s.Do(t, s.Token, http.MethodPost, triagePath, string(body)); answer.Status != http.StatusOK {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	statements := seen.Take("/palisade.findings.v1.TriageService/BulkTriage")
	isPlan := func(s apitest.Statement) bool { return strings.Contains(s.Text, "plan_cache_mode = force_custom_plan") }
	isList := func(s apitest.Statement) bool { return strings.Contains(s.Text, "= ANY(") }
	plan, list := slices.IndexFunc(statements, isPlan), slices.IndexFunc(statements, isList)
	if plan < 0 || list < plan {
		t.Errorf("a list of ids is planned as for one (statement %d, custom plans from %d)", list, plan)
	}
	for _, statement := range statements {
		if n := strings.Count(statement.Text, `"findings"."id" = ANY(`); n > 1 {
			t.Errorf("%d lists of ids in one condition: %s", n, statement.Text)
		}
	}
}
