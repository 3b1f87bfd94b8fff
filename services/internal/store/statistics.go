package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/palisade/palisade/ent/migrate"
)

// RefreshStatistics gives the planner fresh statistics: without them both databases choose the wrong index right after a
// first large import. SQLite reads every index of the tables whose size has changed much, a few seconds for a million
// findings, but one at a time, so that other writers get their turns in between. With a limit on the rows that it reads, it
// could not tell a rare word from a frequent one.
func (s *Store) RefreshStatistics(ctx context.Context) error {
	if s.Postgres() {
		// An ANALYZE that waits for an index to be rebuilt makes that rebuild fail: each waits for the other, whose statement
		// has an old snapshot.
		return s.alone(ctx, upkeepLock, "looking after tables", func() error { return s.refreshStatistics(ctx) })
	}
	return s.refreshStatistics(ctx)
}

func (s *Store) refreshStatistics(ctx context.Context) error {
	statements, err := s.analyses(ctx)
	if err != nil {
		return fmt.Errorf("look for outdated planner statistics: %w", err)
	}
	for _, statement := range statements {
		if _, err := s.patientDB.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("refresh planner statistics: %w", err)
		}
	}
	if s.Postgres() || len(statements) == 0 {
		return nil
	}
	if err := s.reloadStatistics(ctx); err != nil {
		return fmt.Errorf("let connections read the planner statistics: %w", err)
	}
	return nil
}

// reloadStatistics makes the connections that are open read the statistics again: SQLite does so when the schema has changed.
func (s *Store) reloadStatistics(ctx context.Context) error {
	tx, err := s.writerDB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	for _, statement := range []string{"CREATE TABLE statistics_are_new (id INTEGER)", "DROP TABLE statistics_are_new"} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *Store) analyses(ctx context.Context) (statements []string, err error) {
	if s.Postgres() {
		names := make([]string, len(migrate.Tables))
		for i, table := range migrate.Tables {
			names[i] = table.Name
		}
		return []string{"ANALYZE " + strings.Join(names, ", ")}, nil
	}
	known, err := s.knownSizes(ctx)
	if err != nil {
		return nil, err
	}
	for _, table := range migrate.Tables {
		var size int64
		if err := s.readerDB.QueryRowContext(ctx, `SELECT COUNT(*) FROM "`+table.Name+`"`).Scan(&size); err != nil {
			return nil, err
		}
		before, ok := known[table.Name]
		if size == 0 && !ok {
			continue
		}
		if ok && size <= before+before/4 && size >= before-before/4 {
			continue
		}
		for _, index := range table.Indexes {
			statements = append(statements, `ANALYZE "`+index.Name+`"`)
		}
	}
	return statements, nil
}

// knownSizes are the numbers of rows at the latest statistics, by table. The full indexes of a table count all of them.
func (s *Store) knownSizes(ctx context.Context) (map[string]int64, error) {
	var there bool
	err := s.readerDB.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1')").Scan(&there)
	if err != nil || !there {
		return nil, err
	}
	rows, err := s.readerDB.QueryContext(ctx, "SELECT tbl, MAX(CAST(stat AS INTEGER)) FROM sqlite_stat1 GROUP BY tbl")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	sizes := map[string]int64{}
	for rows.Next() {
		var table string
		var size int64
		if err := rows.Scan(&table, &size); err != nil {
			return nil, err
		}
		sizes[table] = size
	}
	return sizes, rows.Err()
}
