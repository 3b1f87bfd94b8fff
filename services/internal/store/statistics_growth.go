package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/palisade/palisade/ent/migrate"
)

const (
	// minGrowth is the number of new rows, in addition to a quarter of the table, that makes its statistics outdated.
	minGrowth = 500
	// writerTimeout limits how long a background refresh waits for the SQLite writer, which an import may hold.
	writerTimeout = 5 * time.Second
)

// RefreshGrown refreshes the statistics of tables that have grown much since the last refresh, and returns their
// names. It only reads counters, so it is cheap enough to run every few seconds. It returns ErrBusy when another
// node refreshes the tables or the SQLite writer is busy: retry later.
func (s *Store) RefreshGrown(ctx context.Context) (grown []string, err error) {
	if !s.Postgres() {
		return s.refreshGrownSQLite(ctx)
	}
	if grown, err = s.grownPostgres(ctx); err != nil || len(grown) == 0 {
		return nil, err
	}
	acquired, err := s.tryWithLock(ctx, statisticsLock, func() error { return s.refreshTables(ctx, grown) })
	if err == nil && !acquired {
		err = ErrBusy
	}
	return grown, err
}

// grownPostgres reads PostgreSQL's counters of changed rows. They are lost in a crash and missing after a restore,
// so it also compares the file's size. But the file also grows during a first import, before its rows are visible. An
// ANALYZE would then record an empty table of many pages, and until the next one PostgreSQL would plan joins as if the
// table had no rows: a triage of 100,000 findings compared each with each.
func (s *Store) grownPostgres(ctx context.Context) (grown []string, err error) {
	rows, err := s.readerDB.QueryContext(ctx, `SELECT c.relname FROM pg_class c LEFT JOIN pg_stat_user_tables u ON u.relid = c.oid
		WHERE c.oid IN `+schemaTables()+` AND (COALESCE(u.n_mod_since_analyze, 0) >= $1 + GREATEST(c.reltuples, 0) / 4
			OR pg_relation_size(c.oid) / current_setting('block_size')::bigint >= 16 + 2 * c.relpages AND NOT `+beingFilled+`)`, minGrowth)
	if err != nil {
		return nil, fmt.Errorf("find tables that have grown: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		grown = append(grown, name)
	}
	return grown, rows.Err()
}

// beingFilled is true for a table c without known rows that an open transaction writes.
const beingFilled = `(c.reltuples <= 0 AND EXISTS (SELECT 1 FROM pg_locks l WHERE l.locktype = 'relation' AND l.relation = c.oid
	AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.mode = 'RowExclusiveLock'))`

// schemaTables lists Palisade's tables for a query. River analyses its own.
func schemaTables() string {
	names := make([]string, len(migrate.Tables))
	for i, table := range migrate.Tables {
		names[i] = "to_regclass('" + pgx.Identifier{table.Name}.Sanitize() + "')"
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// refreshGrownSQLite compares the highest ids with the ids at the last refresh. Counting the rows would read all of
// them.
func (s *Store) refreshGrownSQLite(ctx context.Context) (grown []string, err error) {
	s.growth.Lock()
	defer s.growth.Unlock()
	known, err := s.knownEntries(ctx)
	if err != nil {
		return nil, fmt.Errorf("read planner statistics: %w", err)
	}
	unsampled, err := s.lacksSamples(ctx)
	if err != nil {
		return nil, err
	}
	highest := map[string]int64{}
	for _, table := range migrate.Tables {
		if len(table.PrimaryKey) != 1 || table.PrimaryKey[0].Name != "id" {
			continue
		}
		var id int64
		if err := s.readerDB.QueryRowContext(ctx, `SELECT COALESCE(MAX(id), 0) FROM "`+table.Name+`"`).Scan(&id); err != nil {
			return nil, fmt.Errorf("find tables that have grown: %w", err)
		}
		// an index without a WHERE clause has an entry for each row
		had := slices.Max(append(slices.Collect(maps.Values(known[table.Name])), 0))
		then, seen := s.highest[table.Name]
		if !seen {
			then = had
		}
		if highest[table.Name] = id; id-then >= minGrowth+had/4 || table.Name == sampledTable && unsampled && had > 0 {
			grown = append(grown, table.Name)
		}
	}
	if len(grown) == 0 {
		return nil, nil
	}
	if err := s.refreshTables(ctx, grown); err != nil {
		return grown, err
	}
	for _, name := range grown {
		s.highest[name] = highest[name]
	}
	return grown, nil
}

// analyse runs one ANALYZE. A background run returns ErrBusy when the SQLite writer stays busy for writerTimeout.
func (s *Store) analyse(ctx context.Context, statement string, background bool) error {
	waiting, cancel := ctx, func() {}
	if background && !s.Postgres() {
		waiting, cancel = context.WithTimeout(ctx, writerTimeout)
	}
	conn, err := s.longQueryDB.Conn(waiting)
	cancel()
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return ErrBusy
	}
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, statement)
	return errors.Join(err, conn.Close())
}
