package store

import (
	"slices"
	"testing"

	"github.com/palisade/palisade/services/internal/pgtest"
)

// TestStatisticsBesideAFirstImport: an ANALYZE before the first import commits would record an empty table of many
// pages.
func TestStatisticsBesideAFirstImport(t *testing.T) {
	t.Parallel()
	st := openMigrated(t, Options{Database: pgtest.NewDatabase(t)})
	tx, err := st.writerDB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	_, err = tx.ExecContext(t.Context(), `INSERT INTO settings (name, value) SELECT 'name' || i, repeat('x', 100)::bytea FROM generate_series(1, 2000) i`)
	if err != nil {
		t.Fatal(err)
	}
	if grown, err := st.RefreshGrown(t.Context()); err != nil || slices.Contains(grown, "settings") {
		t.Errorf("during the import: refreshed %v, %v", grown, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if grown, err := st.RefreshGrown(t.Context()); err != nil || !slices.Contains(grown, "settings") {
		t.Errorf("after the import: refreshed %v, %v", grown, err)
	}
	var rows float64
	if err := st.readerDB.QueryRowContext(t.Context(), "SELECT reltuples FROM pg_class WHERE relname = 'settings'").Scan(&rows); err != nil || rows != 2000 {
		t.Errorf("statistics of %v rows, %v", rows, err)
	}
}
