package store

import (
	"os"
	"slices"
	"testing"
)

// TestPlannerKnowsFrequentValues: the SQLite of make build and make test has STAT4, and its statistics have
// samples.
func TestPlannerKnowsFrequentValues(t *testing.T) {
	t.Parallel()
	st := openMigrated(t, Options{DataDir: t.TempDir()})
	knows, err := st.KnowsFrequentValues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !knows {
		if os.Getenv("MAKELEVEL") == "" {
			t.Skip("built without -tags=" + BuildTag + ", which make adds")
		}
		t.Fatal("make builds without -tags=" + BuildTag)
	}
	write := func(statement string) {
		t.Helper()
		if _, err := st.writerDB.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	numbers := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
	write(numbers + "INSERT INTO rules (deployment_id, tool, name, category, confidence, content) SELECT 1, 't', 'rule' || i, 'security', 'high', x'' FROM n")
	write(numbers + `INSERT INTO findings (deployment_id, project_id, rule_id, first_seen_scan_id, ref, tool, analysis_category, fingerprint, issue_type,
		severity, state, status, created_at, relevant_since, state_updated_at, content_hash, content)
		SELECT 1, 1, 1, 1, 'r', 't', '', i, 'sast', CASE WHEN i < 10 THEN 'low' ELSE 'high' END, 'unresolved', 'open', i, i, i, 1, x'' FROM n`)
	if err := st.RefreshStatistics(t.Context()); err != nil {
		t.Fatal(err)
	}
	tables := func() (names string) {
		t.Helper()
		if err := st.readerDB.QueryRowContext(t.Context(), "SELECT COALESCE(GROUP_CONCAT(DISTINCT tbl), '') FROM sqlite_stat4").Scan(&names); err != nil {
			t.Fatal(err)
		}
		return names
	}
	if got := tables(); got != "findings" {
		t.Errorf("samples of %q, want only samples of findings", got)
	}
	write("DELETE FROM sqlite_stat4") // statistics of a build without samples
	grown, err := st.RefreshGrown(t.Context())
	if err != nil || !slices.Contains(grown, "findings") || tables() != "findings" {
		t.Errorf("without samples: refreshed %v, samples of %q, %v", grown, tables(), err)
	}
}
