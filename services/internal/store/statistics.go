package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/palisade/palisade/ent/migrate"
)

// RefreshStatistics gives the planner fresh statistics of all tables: without them both databases choose the wrong index
// right after a first large import. SQLite looks at about a thousand rows of each index, which takes milliseconds, and
// waits for its turn as a writer as long as ctx allows.
func (s *Store) RefreshStatistics(ctx context.Context) error {
	statement := "PRAGMA analysis_limit=1000; ANALYZE"
	if s.Postgres() {
		names := make([]string, len(migrate.Tables))
		for i, table := range migrate.Tables {
			names[i] = table.Name
		}
		statement = "ANALYZE " + strings.Join(names, ", ")
	}
	if _, err := s.writerDB.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("refresh planner statistics: %w", err)
	}
	return nil
}
