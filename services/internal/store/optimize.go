package store

import (
	"context"
	"log/slog"
	"time"
)

// optimizeThreshold is how many changed rows make new planner statistics worth their cost.
const optimizeThreshold = 1000

// OptimizeAfter refreshes the planner's statistics in the background when enough rows have changed: without them both
// databases choose the wrong index right after a first large import.
func (s *Store) OptimizeAfter(changed int) {
	if int(s.changed.Add(int64(changed))) < optimizeThreshold || !s.optimizing.CompareAndSwap(false, true) {
		return
	}
	s.changed.Store(0)
	s.background.Go(func() {
		defer s.optimizing.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		statement := "PRAGMA analysis_limit=1000; ANALYZE"
		if s.Postgres() {
			statement = "ANALYZE findings, finding_events, rules, projects"
		}
		if _, err := s.writerDB.ExecContext(ctx, statement); err != nil {
			slog.Warn("refresh planner statistics", "error", err)
		}
	})
}
