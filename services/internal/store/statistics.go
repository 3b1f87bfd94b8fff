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

// RefreshStatistics refreshes the planner statistics. Without them both databases choose wrong indexes after a
// first large import. On SQLite it reads every index of tables that have changed much in size: a few seconds for a
// million findings. It reads one index at a time, so that other writers run in between. It sets no analysis_limit,
// because SQLite would then keep no samples and could not tell a rare value from a frequent one.
//
// On PostgreSQL it returns ErrBusy while another node refreshes them.
func (s *Store) RefreshStatistics(ctx context.Context) error {
	if !s.Postgres() {
		return s.refreshStatistics(ctx)
	}
	acquired, err := s.tryWithLock(ctx, statisticsLock, func() error { return s.refreshStatistics(ctx) })
	if err == nil && !acquired {
		return ErrBusy
	}
	return err
}

// ErrBusy means that another node or writer is busy with the tables: retry later.
var ErrBusy = errors.New("planner statistics are being refreshed")

func (s *Store) refreshStatistics(ctx context.Context) error { return s.refreshTables(ctx, nil) }

// refreshTables refreshes the statistics of some tables, or of all when tables is nil.
func (s *Store) refreshTables(ctx context.Context, tables []string) error {
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
		return fmt.Errorf("reload the planner statistics: %w", err)
	}
	return nil
}

// reloadStatistics makes open connections read the new statistics. SQLite reads them again after a schema change.
func (s *Store) reloadStatistics(ctx context.Context) error {
	tx, err := s.writerDB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	statements := []string{"CREATE TABLE statistics_are_new (id INTEGER)", "DROP TABLE statistics_are_new"}
	if knows, err := s.KnowsFrequentValues(ctx); err != nil {
		return err
	} else if knows {
		statements = append(statements, "DELETE FROM sqlite_stat4 WHERE tbl <> '"+sampledTable+"'")
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
		// SKIP_LOCKED leaves out a table with a running REINDEX CONCURRENTLY until the next refresh. The rebuild
		// waits for older statements, and an ANALYZE that waited for the table would be a deadlock.
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
		// an index without a WHERE clause has an entry for each row
		before := slices.Max(append(slices.Collect(maps.Values(known[table.Name])), 0))
		outdated := size > before+before/4 || size < before-before/4 || table.Name == sampledTable && unsampled
		for _, index := range table.Indexes {
			// Without statistics, SQLite assumes that a new index finds only a few rows.
			_, there := known[table.Name][index.Name]
			if partial := index.Where != ""; outdated || !there && !partial {
				statements = append(statements, `ANALYZE "`+index.Name+`"`)
			}
		}
	}
	return statements, nil
}

// knownEntries returns the number of entries of each index at the last refresh, by table and index. Empty indexes
// are missing.
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
