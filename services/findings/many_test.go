package findings_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// Filters with thousands of projects stay below the parameter limit of databases, and return the right findings.
func TestFiltersOfManyProjects(t *testing.T) {
	t.Parallel()
	const n = 40_000 // SQLite allows 32,766 parameters
	if testing.Short() {
		t.Skip("seeds 40,000 projects")
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){
			"acme/web": func(p *ent.ProjectCreate) { p.SetVisibility("private") },
			"acme/api": func(p *ent.ProjectCreate) { p.SetVisibility("public") },
		})
		l.seed(t, s, fact{label: "private"}, fact{label: "public", project: "acme/api"})
		seedProjects(t, s, l, n)
		if got := triage(t, s, l, `"issue_type":"sast","new_note":"x","repository_visibility":["private"]`); got != "private" {
			t.Errorf("of private projects: %s", got)
		}
		if got := triage(t, s, l, `"issue_type":"sast","new_note":"y","repository_visibility":["public"]`); got != "public" {
			t.Errorf("of public projects: %s", got)
		}
	})
}

// A category with many rules scans the list; a category with few rules uses the index by rule. Both return the right
// findings.
func TestFiltersOfManyRules(t *testing.T) {
	t.Parallel()
	const n = 120
	extra := make([]*findingsv1.FindingRule, n)
	for i := range extra {
		extra[i] = &findingsv1.FindingRule{Name: fmt.Sprintf("bulk.%03d", i), Category: "bulk", Confidence: "medium"}
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil}, extra...)
		l.seed(t, s, many(n, func(i int, f *fact) { f.rule = extra[i].GetName() })...)
		l.seed(t, s, fact{label: "other", at: 9})
		for query, want := range map[string]int{
			"categories=bulk": n, "categories=bulk&confidence=medium": n, "categories=bulk&confidence=low": 0,
			"categories=bulk&rules=bulk.007,bulk.008,py.sqli": 2, "categories=security": 1, "confidence=high": 1,
			"categories=bulk,security&dedup=true": n + 1,
		} {
			if got := len(strings.Fields(labels(t, s, query+"&page_size=200"))); got != want {
				t.Errorf("%s: %d findings, want %d", query, got, want)
			}
		}
	})
}

// seedProjects adds n private projects with one statement.
func seedProjects(t *testing.T, s *apitest.Server, l *fixture, n int) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return s.Store.Exec(ctx, tx, `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < CAST(? AS INTEGER) - 1)
			INSERT INTO projects (deployment_id, name, name_key, visibility, created_at)
			SELECT CAST(? AS BIGINT), 'bulk/' || i, 'bulk/' || i, 'private', 1 FROM n`, n, l.DeploymentID)
	})
	if err != nil {
		t.Fatal(err)
	}
}
