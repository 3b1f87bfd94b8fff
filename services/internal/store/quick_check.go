package store

import (
	"context"
	"fmt"
)

// QuickCheck checks the pages of a SQLite file for corruption and describes the first problem. It runs on a reader,
// so it blocks no writer. It does nothing on PostgreSQL. It returns an error when ctx ends first.
func (s *Store) QuickCheck(ctx context.Context) (problem string, err error) {
	if s.Postgres() {
		return "", nil
	}
	var verdict string
	if err := s.readerDB.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return "", fmt.Errorf("quick check: %w", err)
	}
	if verdict != "ok" {
		return verdict, nil
	}
	return "", nil
}
