package engine

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/ent/workflowtask"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/issues"
)

// end ends the run of an attempt.
func (w *transition) end(ctx context.Context, status, reason string) error {
	return w.engine.end(ctx, w.tx, w.queue, w.run, status, reason)
}

// end ends a run. It skips tasks that have not begun and removes their jobs, marks running tasks as errors, and writes
// the report, also for a run that did not reach its end step. The caller holds the run's lock, as does all code that
// adds attempts or jobs to a run.
func (e *Engine) end(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, run *ent.WorkflowRun, status, reason string) error {
	if err := stop(ctx, tx, run, status); err != nil {
		return err
	}
	if status != Completed { // a completed run has no waiting jobs
		if err := queue.CancelWaiting(ctx, attemptQueue, run.DeploymentID, run.ID); err != nil {
			return err
		}
	}
	report, err := issues.Report(ctx, tx, run)
	if err != nil {
		return err
	}
	encoded, err := proto.Marshal(report)
	if err != nil {
		return err
	}
	run, err = run.Update().SetStatus(status).SetError(reason).SetFinishedAt(store.Now()).SetReport(encoded).
		SetTotalFindings(report.GetTotalFindings()).AddRevision(1).Save(ctx)
	if err != nil {
		return err
	}
	return issues.RunEnded(ctx, tx, run)
}

// stop ends the open attempts and tasks of a run, with one statement per table.
func stop(ctx context.Context, tx *ent.Tx, run *ent.WorkflowRun, status string) error {
	now := store.Now()
	stopped := "the run has ended before"
	switch status {
	case Cancelled:
		stopped = "the run was cancelled"
	case Failed:
		stopped = "the run has failed before"
	}
	active := activeOf(run.ID)
	err := tx.WorkflowAttempt.Update().Where(append(active, workflowattempt.Status(Pending))...).SetStatus(Skipped).SetFinishedAt(now).Exec(ctx)
	if err != nil {
		return err
	}
	err = tx.WorkflowAttempt.Update().Where(append(active, workflowattempt.Status(Running))...).SetStatus(Error).SetError(stopped).SetFinishedAt(now).
		ClearLeaseUntil().ClearDeadline().Exec(ctx)
	if err != nil {
		return err
	}
	ofRun := workflowtask.RunID(run.ID)
	if err := tx.WorkflowTask.Update().Where(ofRun, workflowtask.Status(Pending)).SetStatus(Skipped).SetFinishedAt(now).Exec(ctx); err != nil {
		return err
	}
	return tx.WorkflowTask.Update().Where(ofRun, workflowtask.Status(Running)).SetStatus(Error).SetFinishedAt(now).Exec(ctx)
}

// Cancel stops a run. It returns the run before and after; the same row twice if it had already ended.
func (e *Engine) Cancel(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, id int64) (before, after *ent.WorkflowRun, err error) {
	run, err := e.lock(ctx, tx, id)
	if err != nil {
		return nil, nil, err
	}
	if run == nil {
		run, err = tx.WorkflowRun.Get(ctx, id)
		return run, run, err
	}
	if err := e.end(ctx, tx, queue, run, Cancelled, ""); err != nil {
		return nil, nil, err
	}
	after, err = tx.WorkflowRun.Get(ctx, id)
	return run, after, err
}
