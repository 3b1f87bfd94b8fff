package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/palisade/palisade/services/internal/apierr"
)

// ErrReplicaBehind means that a replica's schema is older than its primary's.
var ErrReplicaBehind = errors.New("the schema of the read replica is older than the database's: " +
	"wait until the replica has caught up, or check that it replicates this database, and restart")

// OpenReplica opens a read replica of s. Only its Reader may be used, and its rows are as old as the replication
// lag. It does not query the replica: call CheckReplica before using it.
func (s *Store) OpenReplica(ctx context.Context, o Options) (*Store, error) {
	replica, err := openPostgres(ctx, o)
	if err != nil {
		return nil, err
	}
	replica.primary = s
	return replica.withClients(), nil
}

// ErrNoReplica means that a database accepts writes, or follows another primary.
var ErrNoReplica = errors.New("is no longer a replica of the database")

// server identifies a PostgreSQL server and its role in replication.
type server struct {
	standby  bool
	readOnly bool      // sessions of this role cannot write
	started  time.Time // to the microsecond, so it differs for each server
	system   string    // equal on a primary and its standbys; empty when unknown
}

func (s *Store) server(ctx context.Context) (out server, err error) {
	err = s.readerDB.QueryRowContext(ctx, "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only')::boolean, pg_postmaster_start_time()").
		Scan(&out.standby, &out.readOnly, &out.started)
	if err != nil {
		return server{}, fmt.Errorf("identify the server at %s: %w", s.location, err)
	}
	err = s.readerDB.QueryRowContext(ctx, "SELECT CAST(system_identifier AS text) FROM pg_control_system()").Scan(&out.system)
	if err != nil && apierr.SQLState(err) == "" { // some services lack or forbid this function
		return server{}, fmt.Errorf("identify the server at %s: %w", s.location, err)
	}
	return out, nil
}

// checkServer returns an error unless the replica follows its primary or runs on the same server. A promoted
// replica accepts its own writes and falls behind. A copy by other means (logical replication) is accepted if
// its role is read-only: the operator confirms the copy that way.
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
		return fmt.Errorf("%s %w: it was promoted, or never followed %s, and accepts writes. Configure a standby", s.location, ErrNoReplica, s.primary.location)
	}
	return fmt.Errorf("%s %w: it is an independent server that accepts writes. Configure a standby. If it is a copy that is kept up to date by other means, "+
		"make its role read-only: ALTER ROLE … SET default_transaction_read_only = on", s.location, ErrNoReplica)
}

// CheckReplica validates a replica and its schema. The error wraps ErrNoReplica, or ErrReplicaBehind when the
// replica lacks migrations of its primary: queries would name missing columns.
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

// NewTransaction allocates a PostgreSQL transaction id and returns it. Every transaction that has written before
// has a lower id. No cheaper source guarantees that: pg_snapshot_xmax follows the highest completed id, and open
// transactions may have higher ones. A replica returns an id of its primary.
func (s *Store) NewTransaction(ctx context.Context) (number int64, err error) {
	db := s.readerDB
	if s.primary != nil {
		db = s.primary.writerDB
	}
	if err := db.QueryRowContext(ctx, "SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)").Scan(&number); err != nil {
		return 0, fmt.Errorf("allocate a transaction id: %w", err)
	}
	return number, nil
}

// schemaVersion returns the version of the newest applied migration, or 0 before the first. A newer program may
// have applied one that this program does not know.
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
		return 0, fmt.Errorf("read the schema version of %s: %w", s.location, err)
	}
	return version, nil
}
