package store

import (
	"context"
	"errors"
	"fmt"
)

// ErrReplicaBehind says that a replica does not have the schema of the database that it copies.
var ErrReplicaBehind = errors.New("the schema of the read replica is older than that of the database: " +
	"wait until it has caught up, or check that it copies this database, and start again")

// OpenReplica opens a read replica of s, on which only Reader works. What it returns is as late as the replica is. The
// error wraps ErrReplicaBehind when migrations that s has are missing there: such a replica lacks columns that queries
// name.
func (s *Store) OpenReplica(ctx context.Context, o Options) (*Store, error) {
	want, err := s.schemaVersion(ctx)
	if err != nil {
		return nil, err
	}
	replica, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	have, err := replica.schemaVersion(ctx)
	if err == nil && have < want {
		err = fmt.Errorf("%w (it has migration %d, the database %d)", ErrReplicaBehind, have, want)
	}
	if err != nil {
		return nil, errors.Join(err, replica.Close())
	}
	replica.primary = s
	return replica, nil
}

// NewTransaction uses up a number for transactions of PostgreSQL and returns it: every transaction that has changed anything
// before has a lower one. Nothing that PostgreSQL tells without that says so: pg_snapshot_xmax is behind the highest that has
// ended, and others may be open with higher ones. On a replica it is a number of the database that it copies.
func (s *Store) NewTransaction(ctx context.Context) (number int64, err error) {
	db := s.readerDB
	if s.primary != nil {
		db = s.primary.writerDB
	}
	if err := db.QueryRowContext(ctx, "SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)").Scan(&number); err != nil {
		return 0, fmt.Errorf("ask for the number of a transaction: %w", err)
	}
	return number, nil
}

// schemaVersion is the number of the newest migration that was applied; 0 before the first. It may be one that this
// program does not know.
func (s *Store) schemaVersion(ctx context.Context) (version int64, err error) {
	var exists bool
	table := "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'goose_db_version')"
	if s.Postgres() {
		table = "SELECT to_regclass('goose_db_version') IS NOT NULL"
	}
	if err = s.readerDB.QueryRowContext(ctx, table).Scan(&exists); err == nil && exists {
		err = s.readerDB.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&version)
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the schema of %s: %w", s.location, err)
	}
	return version, nil
}
