package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/palisade/palisade/services/internal/store"
)

// Lost returns the arguments of jobs of a kind that were claimed before a time and are still running. River rescues
// jobs of dead workers only after an hour. A caller that cannot wait, and whose jobs are idempotent, enqueues them
// again.
func (j *Jobs) Lost(ctx context.Context, kind string, before time.Time) ([]json.RawMessage, error) {
	return j.arguments(ctx, "FROM river_job WHERE state = 'running' AND kind = ? AND attempted_at < "+j.at(before), kind)
}

// Dropped returns the arguments of jobs of these kinds that were cancelled, or discarded after their last attempt,
// since a time. They never run again.
func (j *Jobs) Dropped(ctx context.Context, kinds []string, since time.Time) ([]json.RawMessage, error) {
	args := make([]any, len(kinds))
	for i, kind := range kinds {
		args[i] = kind
	}
	return j.arguments(ctx, "FROM river_job WHERE state IN ('cancelled', 'discarded') AND finalized_at IS NOT NULL AND finalized_at >= "+
		j.at(since)+" AND kind IN (?"+strings.Repeat(", ?", len(kinds)-1)+")", args...)
}

// Unfinished returns the arguments of a deployment's jobs in a queue that wait or run.
func (j *Jobs) Unfinished(ctx context.Context, queue string, deploymentID int64) ([]json.RawMessage, error) {
	return j.arguments(ctx, unfinishedJobs(j.store.Postgres()), queue, deploymentID)
}

// at writes a time as SQL.
func (j *Jobs) at(t time.Time) string {
	if j.store.Postgres() {
		return "CAST('" + t.UTC().Format(time.RFC3339Nano) + "' AS timestamptz)"
	}
	return "'" + t.UTC().Format("2006-01-02 15:04:05.000") + "'"
}

// arguments reads the arguments of the jobs that a FROM clause selects.
func (j *Jobs) arguments(ctx context.Context, from string, parameters ...any) ([]json.RawMessage, error) {
	reader, _ := j.store.DB()
	rows, err := reader.QueryContext(ctx, j.store.Placeholders("SELECT args "+from), parameters...)
	if err != nil {
		return nil, fmt.Errorf("read the arguments of jobs: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []json.RawMessage
	for rows.Next() {
		var args []byte
		if err := rows.Scan(&args); err != nil {
			return nil, fmt.Errorf("read the arguments of jobs: %w", err)
		}
		out = append(out, args)
	}
	return out, rows.Err()
}

// unfinishedJobs selects a deployment's jobs in a queue that have not ended. It uses the index of turns.
func unfinishedJobs(postgres bool) string {
	deployment, _ := store.JobOwner(postgres)
	table := "river_job"
	if !postgres {
		table += " INDEXED BY " + store.TurnsIndex
	}
	return "FROM " + table + " WHERE finalized_at IS NULL AND (state = 'available') IN (TRUE, FALSE) AND queue = ? AND " + deployment + " = ?"
}
