package scans_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/scans"
)

func TestIndexesAreRebuilt(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, store.Options{Database: storetest.Postgres(t)})
	// One that is just large enough, most of whose entries are gone; and the job as the night would enqueue it.
	_, db := st.DB()
	for _, statement := range []string{
		"INSERT INTO settings (name, value) SELECT (SELECT string_agg(md5(n || ' ' || i), '') FROM generate_series(1, 15) i), 'x' FROM generate_series(1, 75000) n",
		"DELETE FROM settings WHERE id % 10 > 0", "VACUUM ANALYZE settings",
		"INSERT INTO river_job (kind, args, max_attempts, queue, priority) VALUES ('rebuild_indexes', '{}', 1, 'index_rebuild', 1)",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	queue, err := jobs.New(st, log, scans.IndexBackground(st, log))
	if err != nil {
		t.Fatal(err)
	}
	if err := queue.Start(tenant.System(t.Context())); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the job has ended", func() bool {
		var ended bool
		return db.QueryRowContext(t.Context(), "SELECT finalized_at IS NOT NULL FROM river_job WHERE kind = 'rebuild_indexes'").Scan(&ended) == nil && ended
	})
	if err := queue.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), `msg="an index was rebuilt" index=settings_by_name bytes_before=`) || strings.Contains(text.String(), "level=ERROR") {
		t.Errorf("logged:\n%s", text.String())
	}
}
