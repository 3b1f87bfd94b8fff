package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// An index of ours on River's table of jobs: those that have not ended by queue, deployment and run, first those that
// wait for nothing but a worker. By it jobs are taken in turns, and what waits for a run is deleted (see package jobs).
// Its first column is not the state itself: a statement that does not compare that has no choice between this index and
// River's, which begins with it. It is made after River's migrations, without which there is no table.

const (
	// TurnsIndex is its name. SQLite is told to use it, and refuses a statement if it is not there.
	TurnsIndex = "river_job_turns"
	// turnsName is its entry in the list of migrations.
	turnsName = "turns"
)

// JobOwner returns the expressions for the deployment and the run of a job, 0 where its arguments name none. A
// statement must use these, or it cannot use the index.
func JobOwner(postgres bool) (deployment, run string) {
	if postgres {
		return "COALESCE((args->>'deployment_id')::bigint, 0)", "COALESCE((args->>'run_id')::bigint, 0)"
	}
	// Without a type of their own they could not be looked up by values of columns.
	return "CAST(COALESCE(json_extract(args, '$.deployment_id'), 0) AS INTEGER)", "CAST(COALESCE(json_extract(args, '$.run_id'), 0) AS INTEGER)"
}

// turnsColumns are the keys of the index and the rows that it has.
func turnsColumns(postgres bool) string {
	deployment, run := JobOwner(postgres)
	return "((state = 'available'), queue, (" + deployment + "), (" + run + "), priority, scheduled_at, id) WHERE finalized_at IS NULL"
}

// TurnsSchema is what makes the index on each database; it changes when the index does.
func TurnsSchema() string { return turnsColumns(true) + turnsColumns(false) }

// hasTurns tells whether the index is there and complete.
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

// migrateTurns makes the index where it is missing, on PostgreSQL without keeping the queue from those who use it
// meanwhile.
func (s *Store) migrateTurns(ctx context.Context) (made bool, err error) {
	if has, err := s.hasTurns(ctx, s.patientDB); err != nil || has {
		return false, err
	}
	for _, statement := range []string{
		"DROP INDEX CONCURRENTLY IF EXISTS " + TurnsIndex, // what an attempt left that was cut off
		"CREATE INDEX CONCURRENTLY " + TurnsIndex + " ON river_job " + turnsColumns(true),
	} {
		if _, err := s.patientDB.ExecContext(ctx, statement); err != nil {
			return false, err
		}
	}
	return true, nil
}

// migrateTurnsIn makes the index where it is missing, in a transaction on SQLite.
func (s *Store) migrateTurnsIn(ctx context.Context, tx *sql.Tx) (made bool, err error) {
	if has, err := s.hasTurns(ctx, tx); err != nil || has {
		return false, err
	}
	_, err = tx.ExecContext(ctx, "CREATE INDEX "+TurnsIndex+" ON river_job "+turnsColumns(false))
	return err == nil, err
}

// turnsMigration is the entry of the index after River's. No database records when an index was made: it has the time
// of the newest of those.
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
