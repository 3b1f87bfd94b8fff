package scans_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
)

// TestSmallUploadsRefreshStatistics: after many small uploads to an empty table, the planner soon knows its size, and
// again when it has doubled.
func TestSmallUploadsRefreshStatistics(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		reader, _ := s.Store.DB()
		query := "SELECT COALESCE(MAX(CAST(stat AS INTEGER)), 0) FROM sqlite_stat1 WHERE idx = 'findings_by_identity'"
		if s.Store.Postgres() {
			query = "SELECT CAST(reltuples AS bigint) FROM pg_class WHERE relname = 'findings'"
		}
		next := 0
		for _, rows := range []int{1000, 2000} {
			for ; next < rows/10; next++ {
				upload(t, s, fmt.Sprintf("refs/heads/b%d", next), many(t, 10))
			}
			begun := time.Now()
			apitest.Eventually(t, "the planner knows the rows", func() bool {
				var known int
				return reader.QueryRowContext(t.Context(), query).Scan(&known) == nil && known >= (rows-500)*4/5 // allows for a quarter and 500
			})
			t.Logf("%d rows were known after %v", rows, time.Since(begun))
		}
	})
}
