package store

import (
	"testing"

	"github.com/palisade/palisade/services/internal/pgtest"
)

// TestStatisticsBesideReindex: an ANALYZE that waits for a table must not make a concurrent REINDEX fail with a
// deadlock.
func TestStatisticsBesideReindex(t *testing.T) {
	t.Parallel()
	st := openMigrated(t, Options{Database: pgtest.NewDatabase(t)})
	tx, err := st.writerDB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after the Rollback below
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO settings (name, value) VALUES ('held', 'x')"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := st.longQueryDB.ExecContext(t.Context(), "REINDEX INDEX CONCURRENTLY settings_by_name")
		done <- err
	}()
	waitFor(t, st.writerDB, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'REINDEX%')`)
	if err := st.RefreshStatistics(t.Context()); err != nil {
		t.Errorf("statistics during a rebuild: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the rebuild: %v", err)
	}
}
