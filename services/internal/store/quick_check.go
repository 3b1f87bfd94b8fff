package store

import (
	"context"
	"fmt"
)

// QuickCheck reads the pages of a SQLite file and says what is wrong with them; PostgreSQL looks after its own. It uses
// a connection for reading, and so blocks no writer. A context that ends first is its error.
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
