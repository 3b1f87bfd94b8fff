package scans_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/scans"
)

// ranAtStart waits for the run of a periodic job with which every server begins. After that, the job does not interfere
// with what the test prepares.
func ranAtStart(t testing.TB, s *apitest.Server, kind string) {
	t.Helper()
	reader, _ := s.Store.DB()
	apitest.Eventually(t, kind+" ran", func() bool {
		var n int
		err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM river_job WHERE kind = '"+kind+"' AND state = 'completed'").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
}

// many is a report of n results.
func many(t testing.TB, n int) []byte {
	t.Helper()
	results := make([]result, n)
	for i := range results {
		results[i] = result{Rule: "R1", File: fmt.Sprintf("src/%04d.go", i), Code: fmt.Sprintf("call(%d)", i), Line: 1}
	}
	return sarifOf(t, run{Tool: "Demo", Results: results})
}

func TestLargeImportsRefreshStatistics(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		enqueued := func() (n int) {
			reader, _ := s.Store.DB()
			if err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM river_job WHERE kind = 'refresh_statistics'").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		upload(t, s, "refs/heads/small", many(t, 999))
		if n := enqueued(); n != 0 {
			t.Errorf("an import of 999 rows enqueued %d jobs", n)
		}
		large := many(t, 1000)
		upload(t, s, "refs/heads/main", large)
		if n := enqueued(); n != 1 {
			t.Errorf("an import of 1000 rows enqueued %d jobs, want 1", n)
		}
		query := "SELECT COUNT(*) FROM sqlite_master WHERE name = 'sqlite_stat1'"
		if s.Store.Postgres() {
			query = "SELECT COUNT(*) FROM pg_class WHERE relname = 'findings' AND reltuples >= 1000"
		}
		apitest.Eventually(t, "the planner has statistics", func() bool {
			reader, _ := s.Store.DB()
			var n int
			return reader.QueryRowContext(t.Context(), query).Scan(&n) == nil && n == 1
		})
		upload(t, s, "refs/heads/main", large)
		if n := enqueued(); n != 1 {
			t.Errorf("the same report again enqueued another job")
		}
	})
}

func TestAbandonedScansAreGivenUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, abandonedScans)
}

func abandonedScans(t *testing.T, o store.Options) {
	st := storetest.Open(t, o)
	ctx := tenant.System(t.Context())
	const cancelled, pending = scansv1.ScanStatus_SCAN_STATUS_CANCELLED, scansv1.ScanStatus_SCAN_STATUS_PENDING
	seeds := []struct {
		tenant string
		hours  int
		status scansv1.ScanStatus
		want   string
	}{
		{"acme", 25, running, "SCAN_STATUS_NEVER_FINISHED"},
		{"acme", 25, pending, "SCAN_STATUS_NEVER_FINISHED"},
		{"acme", 23, running, "SCAN_STATUS_RUNNING"},
		{"acme", 23, pending, "SCAN_STATUS_PENDING"},
		{"acme", 2000, completed, "SCAN_STATUS_COMPLETED"},
		{"acme", 2000, failed, "SCAN_STATUS_ERROR"},
		{"other", 2000, cancelled, "SCAN_STATUS_CANCELLED"},
		{"other", 2000, running, "SCAN_STATUS_NEVER_FINISHED"},
	}
	err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		tenants := map[string]int64{}
		for _, slug := range []string{"acme", "other"} {
			d, err := tx.Deployment.Create().SetSlug(slug).SetName(slug).SetCreatedAt(store.Now()).Save(ctx)
			if err != nil {
				return err
			}
			tenants[slug] = d.ID
		}
		for _, seed := range seeds {
			err := tx.Scan.Create().SetDeploymentID(tenants[seed.tenant]).SetProjectID(1).SetRef("refs/heads/main").SetCommit("").
				SetStatus(seed.status.String()).SetProducts(0).SetIsFullScan(true).SetMeta([]byte{}).SetStats(map[string]any{}).
				SetStartedAt(store.Micros(time.Now().Add(-time.Duration(seed.hours) * time.Hour))).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	queue, err := jobs.New(st, log, scans.Background(st, log))
	if err != nil {
		t.Fatal(err)
	}
	if err := queue.Start(ctx); err != nil {
		t.Fatal(err)
	}
	neverFinished := scan.Status(scansv1.ScanStatus_SCAN_STATUS_NEVER_FINISHED.String())
	apitest.Eventually(t, "scans are given up", func() bool { return st.Reader.Scan.Query().Where(neverFinished).ExistX(ctx) })
	if err := queue.Stop(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	for i, row := range st.Reader.Scan.Query().Order(ent.Asc(scan.FieldID)).AllX(ctx) {
		if row.Status != seeds[i].want {
			t.Errorf("a scan of %s, %d hours old and %s, became %s, want %s", seeds[i].tenant, seeds[i].hours, seeds[i].status, row.Status, seeds[i].want)
		}
	}
	if !strings.Contains(text.String(), `msg="scans that never finished were abandoned" scans=3`) || strings.Contains(text.String(), "level=ERROR") {
		t.Errorf("logged:\n%s", text.String())
	}
}
