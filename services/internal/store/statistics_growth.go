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
	// growthAnyway is how many rows a table must have got since its latest statistics to get new ones, beside a quarter of
	// what it had.
	growthAnyway = 500
	// writerPatience is how long statistics that nobody waits for ask for the writer of SQLite, which an import may hold.
	writerPatience = 5 * time.Second
)

// RefreshGrown refreshes the statistics of those tables that have grown much since they were made, by however small
// writes, and tells which these are. It looks at counters only, so that it can be called every few seconds. ErrBusy:
// others look after the tables, or hold the writer of SQLite; try again later.
func (s *Store) RefreshGrown(ctx context.Context) (grown []string, err error) {
	if !s.Postgres() {
		return s.refreshGrownSQLite(ctx)
	}
	if grown, err = s.grownPostgres(ctx); err != nil || len(grown) == 0 {
		return nil, err
	}
	ours, err := s.aloneNow(ctx, upkeepLock, func() error { return s.refreshThose(ctx, grown) })
	if err == nil && !ours {
		err = ErrBusy
	}
	return grown, err
}

// grownPostgres asks for what PostgreSQL has counted. It forgets that when it was killed, and knows nothing of a table
// that was restored: the size of the file tells then.
func (s *Store) grownPostgres(ctx context.Context) (grown []string, err error) {
	rows, err := s.readerDB.QueryContext(ctx, `SELECT c.relname FROM pg_class c LEFT JOIN pg_stat_user_tables u ON u.relid = c.oid
		WHERE c.oid IN `+ourTables()+` AND (COALESCE(u.n_mod_since_analyze, 0) >= $1 + GREATEST(c.reltuples, 0) / 4
			OR pg_relation_size(c.oid) / current_setting('block_size')::bigint >= 16 + 2 * c.relpages)`, growthAnyway)
	if err != nil {
		return nil, fmt.Errorf("look for tables that have grown: %w", err)
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

// ourTables are those of this schema, for a query. River looks after its own.
func ourTables() string {
	names := make([]string, len(migrate.Tables))
	for i, table := range migrate.Tables {
		names[i] = "to_regclass('" + pgx.Identifier{table.Name}.Sanitize() + "')"
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// refreshGrownSQLite compares the highest ids with those at the time of the statistics: to count rows would read all of
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
			return nil, fmt.Errorf("look for tables that have grown: %w", err)
		}
		had := slices.Max(append(slices.Collect(maps.Values(known[table.Name])), 0)) // full indexes have all rows
		then, seen := s.highest[table.Name]
		if !seen {
			then = had
		}
		if highest[table.Name] = id; id-then >= growthAnyway+had/4 || table.Name == sampled && unsampled && had > 0 {
			grown = append(grown, table.Name)
		}
	}
	if len(grown) == 0 {
		return nil, nil
	}
	if err := s.refreshThose(ctx, grown); err != nil {
		return grown, err
	}
	for _, name := range grown {
		s.highest[name] = highest[name]
	}
	return grown, nil
}

// analyse runs one ANALYZE. One that nobody waits for gives up when it does not get the writer of SQLite soon.
func (s *Store) analyse(ctx context.Context, statement string, impatient bool) error {
	waiting, cancel := ctx, func() {}
	if impatient && !s.Postgres() {
		waiting, cancel = context.WithTimeout(ctx, writerPatience)
	}
	conn, err := s.patientDB.Conn(waiting)
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
