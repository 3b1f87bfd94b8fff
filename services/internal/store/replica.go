package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/palisade/palisade/services/internal/apierr"
)

// ErrReplicaBehind says that a replica does not have the schema of the database that it copies.
var ErrReplicaBehind = errors.New("the schema of the read replica is older than that of the database: " +
	"wait until it has caught up, or check that it copies this database, and start again")

// OpenReplica opens a read replica of s, on which only Reader works. What it returns is as late as the replica is. It
// asks the replica nothing: use it once CheckReplica has found nothing wrong.
func (s *Store) OpenReplica(ctx context.Context, o Options) (*Store, error) {
	replica, err := openPostgres(ctx, o)
	if err != nil {
		return nil, err
	}
	replica.primary = s
	return replica.withClients(), nil
}

// ErrNoReplica says that a database takes changes of its own, or follows another one than that which it should copy.
var ErrNoReplica = errors.New("is no replica of the database any more")

// server tells servers of PostgreSQL apart, and whether one follows another.
type server struct {
	standby  bool
	readOnly bool      // sessions of this role take no changes
	started  time.Time // no two servers start in the same microsecond
	system   string    // the same for a primary and its standbys; empty where it is not told
}

func (s *Store) server(ctx context.Context) (out server, err error) {
	err = s.readerDB.QueryRowContext(ctx, "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only')::boolean, pg_postmaster_start_time()").
		Scan(&out.standby, &out.readOnly, &out.started)
	if err != nil {
		return server{}, fmt.Errorf("ask %s what it is: %w", s.location, err)
	}
	err = s.readerDB.QueryRowContext(ctx, "SELECT CAST(system_identifier AS text) FROM pg_control_system()").Scan(&out.system)
	if err != nil && apierr.SQLState(err) == "" { // some services do not have or allow this function
		return server{}, fmt.Errorf("ask %s what it is: %w", s.location, err)
	}
	return out, nil
}

// checkServer asks whether the replica still follows its primary, or is on the same server. One that was promoted takes
// changes of its own, and what it shows is older every day. A copy that something else keeps (logical replication) is
// taken when its role cannot change it: that is how an operator says that it is meant.
func (s *Store) checkServer(ctx context.Context) error {
	there, err := s.server(ctx)
	if err != nil {
		return err
	}
	here, err := s.primary.server(ctx)
	if err != nil {
		return err
	}
	known := there.system != "" && here.system != ""
	same := known && there.system == here.system
	switch {
	case there.started.Equal(here.started):
		return nil
	case there.standby && known && !same:
		return fmt.Errorf("%s %w: it is a standby of another server than %s", s.location, ErrNoReplica, s.primary.location)
	case there.standby, there.readOnly && !same:
		return nil
	case same:
		return fmt.Errorf("%s %w: it was promoted, or never followed %s, and takes changes of its own; name a standby", s.location, ErrNoReplica, s.primary.location)
	}
	return fmt.Errorf("%s %w: it is a server of its own that takes changes. Name a standby; or, if it is a copy that something else keeps up to date, "+
		"let its role only read: ALTER ROLE … SET default_transaction_read_only = on", s.location, ErrNoReplica)
}

// CheckReplica asks a replica whether it still is one, and which schema it has. The error wraps ErrNoReplica, or
// ErrReplicaBehind when migrations that its primary has are missing there: such a replica lacks columns that queries
// name.
func (s *Store) CheckReplica(ctx context.Context) error {
	if err := s.checkServer(ctx); err != nil {
		return err
	}
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

// NewTransaction uses up a number for transactions of PostgreSQL and returns it: every transaction that has changed
// anything before has a lower one. Nothing that PostgreSQL tells without that says so: pg_snapshot_xmax is behind the
// highest that has ended, and others may be open with higher ones. On a replica it is a number of the database that it
// copies.
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
