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
	return replica, nil
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
