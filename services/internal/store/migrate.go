package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/services/internal/newname"
)

// Migration is one step of the schema's history.
type Migration struct {
	Version int64
	Name    string
	// AppliedAt is zero when the migration is pending.
	AppliedAt time.Time
}

// ErrPending means that the schema is older than this program.
var ErrPending = errors.New("the database schema is older than this program: back up the database and run `palisade migrate up`")

// Migrate applies the pending migrations and returns them. Several nodes may call it at once.
func (s *Store) Migrate(ctx context.Context) (applied []Migration, err error) {
	err = s.withMigrationLock(ctx, func() error {
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
	if err == nil && len(applied) > 0 && !s.Postgres() {
		err = s.refreshStatistics(ctx) // for the new indexes; PostgreSQL keeps statistics per column
	}
	return append(applied, queue...), err
}

// Migrations lists all migrations with the time each was applied: first Palisade's tables, then the job queue's.
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

// MigrateOnStart prepares the schema when the server starts. It migrates an empty database. When migrations are
// pending, SQLite is first copied to another file in the same directory; its path is returned. PostgreSQL is not
// migrated, because other nodes may use it: the error is ErrPending. Several nodes may call it at once.
func (s *Store) MigrateOnStart(ctx context.Context) (backup string, err error) {
	err = s.withMigrationLock(ctx, func() error {
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

// pending reports whether migrations are pending, and whether none was ever applied.
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
	return path, newname.MakePrivate(path)
}

// withMigrationLock runs fn while no other node reads or changes the schema. A node that saw a partial schema would
// refuse to start. A SQLite file has only one node.
func (s *Store) withMigrationLock(ctx context.Context, fn func() error) error {
	if !s.Postgres() {
		return fn()
	}
	return s.withLock(ctx, lock.DefaultLockID, "migrating", fn) // goose's lock, so that its command-line tool waits too
}

func (s *Store) provider() (*goose.Provider, error) {
	dialect, dir := goose.DialectSQLite3, "sqlite"
	if s.Postgres() {
		dialect, dir = goose.DialectPostgres, "postgres"
	}
	files, err := fs.Sub(migrate.Files, dir)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, s.longQueryDB, files, goose.WithDisableGlobalRegistry(true))
}
