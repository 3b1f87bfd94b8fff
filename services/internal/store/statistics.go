package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent/migrate"
)

// RefreshStatistics gives the planner fresh statistics: without them both databases choose the wrong index right after
// a first large import. SQLite reads every index of the tables whose size has changed much, a few seconds for a million
// findings, but one at a time, so that other writers get their turns in between. With a limit on the rows that it reads
// (analysis_limit) it would keep no samples, and could not tell a rare word from a frequent one.
//
// On PostgreSQL it is ErrBusy while others refresh them.
func (s *Store) RefreshStatistics(ctx context.Context) error {
	if !s.Postgres() {
		return s.refreshStatistics(ctx)
	}
	ours, err := s.aloneNow(ctx, upkeepLock, func() error { return s.refreshStatistics(ctx) })
	if err == nil && !ours {
		return ErrBusy
	}
	return err
}

// ErrBusy says that others look after the tables now: try again in a while.
var ErrBusy = errors.New("planner statistics are being refreshed")

func (s *Store) refreshStatistics(ctx context.Context) error { return s.refreshThose(ctx, nil) }

// refreshThose refreshes the statistics of some tables; nil are all.
func (s *Store) refreshThose(ctx context.Context, tables []string) error {
	statements, err := s.analyses(ctx, tables)
	if err != nil {
		return fmt.Errorf("look for outdated planner statistics: %w", err)
	}
	for _, statement := range statements {
		if err := s.analyse(ctx, statement, tables != nil); err != nil {
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

// reloadStatistics makes the connections that are open read the statistics again: SQLite does so when the schema has
// changed.
func (s *Store) reloadStatistics(ctx context.Context) error {
	tx, err := s.writerDB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	statements := []string{"CREATE TABLE statistics_are_new (id INTEGER)", "DROP TABLE statistics_are_new"}
	if knows, err := s.KnowsFrequentValues(ctx); err != nil {
		return err
	} else if knows {
		statements = append(statements, "DELETE FROM sqlite_stat4 WHERE tbl <> '"+sampled+"'")
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *Store) analyses(ctx context.Context, tables []string) (statements []string, err error) {
	if s.Postgres() {
		if tables == nil {
			for _, table := range migrate.Tables {
				tables = append(tables, table.Name)
			}
		}
		// A table whose index somebody rebuilds CONCURRENTLY is left to the next run: the rebuild waits for statements that
		// are older, and PostgreSQL would end it as a deadlock with an ANALYZE that waits for the table.
		return []string{"ANALYZE (SKIP_LOCKED) " + strings.Join(tables, ", ")}, nil
	}
	known, err := s.knownEntries(ctx)
	if err != nil {
		return nil, err
	}
	unsampled, err := s.lacksSamples(ctx)
	if err != nil {
		return nil, err
	}
	for _, table := range migrate.Tables {
		if tables != nil && !slices.Contains(tables, table.Name) {
			continue
		}
		var size int64
		if err := s.readerDB.QueryRowContext(ctx, `SELECT COUNT(*) FROM "`+table.Name+`"`).Scan(&size); err != nil {
			return nil, err
		}
		if size == 0 && len(known[table.Name]) == 0 {
			continue
		}
		before := slices.Max(append(slices.Collect(maps.Values(known[table.Name])), 0)) // full indexes have all rows
		outdated := size > before+before/4 || size < before-before/4 || table.Name == sampled && unsampled
		for _, index := range table.Indexes {
			// One that came with a migration would be taken for one that finds a few rows.
			_, there := known[table.Name][index.Name]
			if partial := index.Annotation != nil && index.Annotation.Where != ""; outdated || !there && !partial {
				statements = append(statements, `ANALYZE "`+index.Name+`"`)
			}
		}
	}
	return statements, nil
}

// knownEntries are how many entries indexes had at the latest statistics, by table and index. Indexes without entries
// have none.
func (s *Store) knownEntries(ctx context.Context) (map[string]map[string]int64, error) {
	known := map[string]map[string]int64{}
	var there bool
	err := s.readerDB.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1')").Scan(&there)
	if err != nil || !there {
		return known, err
	}
	rows, err := s.readerDB.QueryContext(ctx, "SELECT tbl, idx, CAST(stat AS INTEGER) FROM sqlite_stat1 WHERE idx IS NOT NULL")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var table, index string
		var entries int64
		if err := rows.Scan(&table, &index, &entries); err != nil {
			return nil, err
		}
		if known[table] == nil {
			known[table] = map[string]int64{}
		}
		known[table][index] = entries
	}
	return known, rows.Err()
}
