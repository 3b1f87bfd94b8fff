package jobs

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/services/internal/store"
)

// CancelWaiting deletes a run's jobs that have not begun, in one statement, in the transaction of the store.Write
// that ctx comes from. Running jobs continue.
func (j *Jobs) CancelWaiting(ctx context.Context, queue string, deploymentID, runID int64) error {
	tx, ok := j.store.Tx(ctx)
	if !ok {
		return fmt.Errorf("cancel the jobs of run %d: not inside store.Write, or not with its context", runID)
	}
	if _, err := tx.ExecContext(ctx, j.store.Placeholders(cancelQuery(j.store.Postgres())), queue, deploymentID, runID); err != nil {
		return fmt.Errorf("cancel the jobs of run %d: %w", runID, err)
	}
	return nil
}

// cancelQuery deletes by the index of turns.
func cancelQuery(postgres bool) string {
	_, run := store.JobOwner(postgres)
	return "DELETE " + waitingJobs(postgres) + " AND " + run + " = ?"
}

// waitingJobs selects a deployment's jobs in a queue that have neither begun nor ended.
func waitingJobs(postgres bool) string { return unfinishedJobs(postgres) + " AND state <> 'running'" }
