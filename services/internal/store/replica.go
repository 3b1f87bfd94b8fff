package store

import (
	"context"
	"errors"
	"fmt"
)

// ErrReplicaBehind says that a replica does not have the schema of the database that it copies.
var ErrReplicaBehind = errors.New("the schema of the read replica is older than that of the database: " +
	"wait until it has caught up, or check that it copies this database, and start again")

// OpenReplica opens a read replica of s, on which only Reader works. What it returns is as late as the replica is. It asks
// the replica nothing: use it once CheckReplica has found nothing wrong.
func (s *Store) OpenReplica(ctx context.Context, o Options) (*Store, error) {
	replica, err := openPostgres(ctx, o)
	if err != nil {
		return nil, err
	}
	replica.primary = s
	return replica.withClients(), nil
}

// CheckReplica asks a replica which schema it has. The error wraps ErrReplicaBehind when migrations that its primary has are missing
// there: such a replica lacks columns that queries name.
func (s *Store) CheckReplica(ctx context.Context) error {
	have, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	want, err := s.primary.schemaVersion(ctx)
	if err != nil {
		return err
	}
	if have < want {
		return fmt.Errorf("%w (it has migration %d, the database %d)", ErrReplicaBehind, have, want)
	}
	return nil
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
