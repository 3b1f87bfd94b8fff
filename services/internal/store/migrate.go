package store

import (
	"context"
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
func (s *Store) Migrate(ctx context.Context) ([]Migration, error) {
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
	return applied, nil
}

// Migrations lists all migrations with the time at which each was applied.
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
	return list, nil
}

// MigrateOnStart prepares the schema when the server starts. An empty database is migrated silently. When migrations
// are pending, SQLite is copied to a file beside it (its path is returned) and then migrated; PostgreSQL, which other
// nodes may be using, is left alone and the error is ErrPending.
func (s *Store) MigrateOnStart(ctx context.Context) (backup string, err error) {
	provider, err := s.provider()
	if err != nil {
		return "", err
	}
	pending, err := provider.HasPending(ctx)
	if err != nil {
		return "", fmt.Errorf("read migration status: %w", err)
	}
	if !pending {
		return "", nil
	}
	version, err := provider.GetDBVersion(ctx)
	if err != nil {
		return "", fmt.Errorf("read schema version: %w", err)
	}
	if version > 0 {
		if s.Postgres() {
			return "", ErrPending
		}
		backup = fmt.Sprintf("%s.before-%s", s.location, time.Now().UTC().Format("20060102T150405Z"))
		if _, err := s.writerDB.ExecContext(ctx, "VACUUM INTO ?", backup); err != nil {
			return "", fmt.Errorf("back up to %s before migrating: %w", backup, err)
		}
		if err := os.Chmod(backup, 0o600); err != nil {
			return "", err
		}
	}
	_, err = s.Migrate(ctx)
	return backup, err
}

func (s *Store) provider() (*goose.Provider, error) {
	dialect, dir := goose.DialectSQLite3, "sqlite"
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if s.Postgres() {
		dialect, dir = goose.DialectPostgres, "postgres"
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	files, err := fs.Sub(migrate.Files, dir)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, s.writerDB, files, options...)
}
