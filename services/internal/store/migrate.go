package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/palisade/palisade/ent/migrate"
)

// Migration is one step of the schema.
type Migration struct {
	Version int64
	Name    string
	// AppliedAt is zero for a pending migration.
	AppliedAt time.Time
}

// ErrPending says that the schema is older than this program.
var ErrPending = errors.New("the database schema is older than this program: back up the database and run `palisade migrate up`")

// Migrate brings the schema up to date and returns the migrations it applied. Several nodes may call it at once.
func (s *Store) Migrate(ctx context.Context) (applied []Migration, err error) {
	err = s.aloneMigrating(ctx, func() error {
		applied, err = s.migrate(ctx)
		return err
	})
	return applied, err
}

func (s *Store) migrate(ctx context.Context) ([]Migration, error) {
	provider, err := s.provider()
	if err != nil {
		return nil, err
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	applied := make([]Migration, len(results))
	for i, r := range results {
		applied[i] = Migration{Version: r.Source.Version, Name: r.Source.Path, AppliedAt: time.Now().UTC()}
	}
	queue, err := s.migrateQueue(ctx)
	return append(applied, queue...), err
}

// Migrations lists all migrations with the time at which each was applied: those of our tables, then those of the job
// queue.
func (s *Store) Migrations(ctx context.Context) ([]Migration, error) {
	provider, err := s.provider()
	if err != nil {
		return nil, err
	}
	statuses, err := provider.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("read migration status: %w", err)
	}
	list := make([]Migration, len(statuses))
	for i, st := range statuses {
		list[i] = Migration{Version: st.Source.Version, Name: st.Source.Path, AppliedAt: st.AppliedAt}
	}
	queue, err := s.queueMigrations(ctx)
	if err != nil {
		return nil, err
	}
	return append(list, queue...), nil
}

// MigrateOnStart prepares the schema when the server starts. An empty database is migrated silently. When migrations
// are pending, SQLite is copied to a file beside it (its path is returned) and then migrated; PostgreSQL, which other
// nodes may be using, is left alone and the error is ErrPending. Several nodes may call it at once.
func (s *Store) MigrateOnStart(ctx context.Context) (backup string, err error) {
	err = s.aloneMigrating(ctx, func() error {
		pending, empty, err := s.pending(ctx)
		if err != nil || !pending {
			return err
		}
		if !empty {
			if s.Postgres() {
				return ErrPending
			}
			if backup, err = s.backUp(ctx); err != nil {
				return err
			}
		}
		_, err = s.migrate(ctx)
		return err
	})
	return backup, err
}

// pending also tells whether no migration was ever applied.
func (s *Store) pending(ctx context.Context) (pending, empty bool, err error) {
	list, err := s.Migrations(ctx)
	if err != nil {
		return false, false, err
	}
	empty = true
	for _, m := range list {
		if m.AppliedAt.IsZero() {
			pending = true
		} else {
			empty = false
		}
	}
	return pending, empty, nil
}

func (s *Store) backUp(ctx context.Context) (string, error) {
	path := fmt.Sprintf("%s.before-%s", s.location, time.Now().UTC().Format("20060102T150405Z"))
	if _, err := s.writerDB.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return "", fmt.Errorf("back up to %s before migrating: %w", path, err)
	}
	return path, os.Chmod(path, 0o600)
}

// aloneMigrating runs fn while no other node looks at the schema or changes it: one that saw it half made would refuse to
// start. A SQLite file has one node.
func (s *Store) aloneMigrating(ctx context.Context, fn func() error) (err error) {
	if !s.Postgres() {
		return fn()
	}
	conn, err := s.writerDB.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect for migrating: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for {
		tx, err := lockMigrating(ctx, conn)
		if err != nil {
			return fmt.Errorf("wait for other nodes that migrate: %w", err)
		}
		if tx != nil {
			defer func() { _ = tx.Rollback() }() // it changed nothing, and the lock goes with it in any case
			return fn()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for other nodes that migrate: %w", ctx.Err())
		case <-time.After(migrateLook):
		}
	}
}

// lockMigrating returns the transaction that holds the lock, or nil while another one does. It is that of a transaction, which stays
// open: behind a pooler that changes the server's connection after each statement (PgBouncer, transaction mode), a lock of the
// session would stay with a connection that others get next.
//
// CREATE INDEX CONCURRENTLY, in a migration of whoever has the lock, waits for the end of each transaction that has a snapshot.
// So a node that waits asks in a new transaction each time, and the one that holds the lock has none: PostgreSQL keeps that of
// a SELECT until the next statement, and SET takes none.
func lockMigrating(ctx context.Context, conn *sql.Conn) (*sql.Tx, error) {
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return nil, err
	}
	var ours bool
	// goose's own number, so that its command-line tool waits too.
	err = tx.QueryRowContext(ctx, "SELECT pg_try_advisory_xact_lock($1)", lock.DefaultLockID).Scan(&ours)
	if err == nil && ours { // this connection is idle while we migrate
		_, err = tx.ExecContext(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0")
	}
	if err != nil || !ours {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx, nil
}

// migrateLook is how often a node asks whether others still migrate.
const migrateLook = 100 * time.Millisecond

func (s *Store) provider() (*goose.Provider, error) {
	dialect, dir := goose.DialectSQLite3, "sqlite"
	if s.Postgres() {
		dialect, dir = goose.DialectPostgres, "postgres"
	}
	files, err := fs.Sub(migrate.Files, dir)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, s.patientDB, files, goose.WithDisableGlobalRegistry(true))
}
