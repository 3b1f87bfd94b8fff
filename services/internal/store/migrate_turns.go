package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Palisade adds an index to River's table of jobs. It has the unfinished jobs by queue, deployment and run,
// runnable jobs first. The fair scheduler reads jobs by it, and cancelling a run deletes the run's waiting jobs by
// it (see package jobs). Its first column is an expression and not the state, so that statements that compare the
// state do not have to choose between this index and River's. It is created after River's migrations, which create
// the table.

const (
	// TurnsIndex is the index's name. SQLite statements name it in INDEXED BY, and fail without it.
	TurnsIndex = "river_job_turns"
	// turnsName is the name of its migration.
	turnsName = "turns"
)

// JobOwner returns the SQL expressions for the deployment and the run of a job; they are 0 when the job has none. A
// query can use the index only with exactly these expressions.
func JobOwner(postgres bool) (deployment, run string) {
	if postgres {
		return "COALESCE((args->>'deployment_id')::bigint, 0)", "COALESCE((args->>'run_id')::bigint, 0)"
	}
	// Without the casts the expressions have no type affinity, and comparing them with a column could not use the
	// index.
	return "CAST(COALESCE(json_extract(args, '$.deployment_id'), 0) AS INTEGER)", "CAST(COALESCE(json_extract(args, '$.run_id'), 0) AS INTEGER)"
}

// turnsColumns returns the key columns and the WHERE clause of the index.
func turnsColumns(postgres bool) string {
	deployment, run := JobOwner(postgres)
	return "((state = 'available'), queue, (" + deployment + "), (" + run + "), priority, scheduled_at, id) WHERE finalized_at IS NULL"
}

// TurnsSchema returns the definition of the index on both databases, to detect that it has changed.
func TurnsSchema() string { return turnsColumns(true) + turnsColumns(false) }

// hasTurns reports whether the index exists and is valid.
func (s *Store) hasTurns(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (bool, error) {
	query := "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = '" + TurnsIndex + "'"
	if s.Postgres() {
		query = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass('" + TurnsIndex + "') AND indisvalid"
	}
	var one int
	err := db.QueryRowContext(ctx, query).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// migrateTurns creates the index on PostgreSQL if it is missing, without blocking the queue.
func (s *Store) migrateTurns(ctx context.Context) (made bool, err error) {
	if has, err := s.hasTurns(ctx, s.longQueryDB); err != nil || has {
		return false, err
	}
	for _, statement := range []string{
		"DROP INDEX CONCURRENTLY IF EXISTS " + TurnsIndex, // left by an interrupted attempt
		"CREATE INDEX CONCURRENTLY " + TurnsIndex + " ON river_job " + turnsColumns(true),
	} {
		if _, err := s.longQueryDB.ExecContext(ctx, statement); err != nil {
			return false, err
		}
	}
	return true, nil
}

// migrateTurnsIn creates the index on SQLite if it is missing, in a transaction.
func (s *Store) migrateTurnsIn(ctx context.Context, tx *sql.Tx) (made bool, err error) {
	if has, err := s.hasTurns(ctx, tx); err != nil || has {
		return false, err
	}
	_, err = tx.ExecContext(ctx, "CREATE INDEX "+TurnsIndex+" ON river_job "+turnsColumns(false))
	return err == nil, err
}

// turnsMigration is the index's entry after River's migrations. Databases do not record when an index was created,
// so it has the time of the newest River migration.
func (s *Store) turnsMigration(ctx context.Context, list []Migration) (Migration, error) {
	m := queueMigration(len(list)+1, turnsName, time.Time{})
	has, err := s.hasTurns(ctx, s.readerDB)
	if err != nil {
		return m, fmt.Errorf("look for the index %s: %w", TurnsIndex, err)
	}
	for _, other := range list {
		if has && other.AppliedAt.After(m.AppliedAt) {
			m.AppliedAt = other.AppliedAt
		}
	}
	return m, nil
}
