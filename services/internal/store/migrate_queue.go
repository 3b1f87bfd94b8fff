package store

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// The job queue (River) has its own migrations, numbered from 1. They are applied after Palisade's and listed with
// them.

func (s *Store) queueMigrator() (*rivermigrate.Migrator[*sql.Tx], error) {
	var driver riverdriver.Driver[*sql.Tx] = riversqlite.New(s.longQueryDB)
	if s.Postgres() {
		driver = riverdatabasesql.New(s.longQueryDB)
	}
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("job queue migrations: %w", err)
	}
	return migrator, nil
}

// migrateQueue applies the pending migrations and returns them.
func (s *Store) migrateQueue(ctx context.Context) ([]Migration, error) {
	migrator, err := s.queueMigrator()
	if err != nil {
		return nil, err
	}
	var result *rivermigrate.MigrateResult
	var turns bool
	if s.Postgres() {
		// Each runs in its own transaction: PostgreSQL cannot use a new enum value before it is committed.
		if result, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err == nil {
			turns, err = s.migrateTurns(ctx)
		}
	} else {
		result, turns, err = s.migrateQueueAtOnce(ctx, migrator)
	}
	if err != nil {
		return nil, fmt.Errorf("migrate the job queue: %w", err)
	}
	applied := make([]Migration, len(result.Versions))
	for i, version := range result.Versions {
		applied[i] = queueMigration(version.Version, version.Name, time.Now().UTC())
	}
	if turns {
		applied = append(applied, queueMigration(len(migrator.AllVersions())+1, turnsName, time.Now().UTC()))
	}
	return applied, nil
}

// migrateQueueAtOnce checks for and applies migrations in one transaction, so that another process with the same
// file waits.
func (s *Store) migrateQueueAtOnce(ctx context.Context, migrator *rivermigrate.Migrator[*sql.Tx]) (_ *rivermigrate.MigrateResult, turns bool, err error) {
	tx, err := s.writerDB.BeginTx(ctx, nil)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	//lint:ignore SA1019 the warning is about PostgreSQL, whose new enum values cannot be used before they are committed
	result, err := migrator.MigrateTx(ctx, tx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return nil, false, err
	}
	if turns, err = s.migrateTurnsIn(ctx, tx); err != nil {
		return nil, false, err
	}
	return result, turns, tx.Commit()
}

// queueMigrations lists the job queue's migrations with the time each was applied.
func (s *Store) queueMigrations(ctx context.Context) ([]Migration, error) {
	migrator, err := s.queueMigrator()
	if err != nil {
		return nil, err
	}
	existing, err := migrator.ExistingVersions(ctx)
	if err != nil {
		return nil, fmt.Errorf("read migration status of the job queue: %w", err)
	}
	applied := map[int]time.Time{}
	if len(existing) > 0 { // otherwise the table may be missing
		if applied, err = s.queueMigrationTimes(ctx); err != nil {
			return nil, fmt.Errorf("read migration times of the job queue: %w", err)
		}
	}
	all := migrator.AllVersions()
	list := make([]Migration, len(all))
	for i, m := range all {
		list[i] = queueMigration(m.Version, m.Name, applied[m.Version])
	}
	turns, err := s.turnsMigration(ctx, list)
	return append(list, turns), err
}

func (s *Store) queueMigrationTimes(ctx context.Context) (map[int]time.Time, error) {
	rows, err := s.readerDB.QueryContext(ctx, "SELECT version, created_at FROM river_migration")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	times := map[int]time.Time{}
	for rows.Next() {
		var version int
		var at time.Time
		if err := rows.Scan(&version, &at); err != nil {
			return nil, err
		}
		times[version] = at.UTC()
	}
	return times, rows.Err()
}

func queueMigration(version int, name string, at time.Time) Migration {
	return Migration{Version: int64(version), Name: "job queue: " + name, AppliedAt: at}
}
