package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflowartifact"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/ent/workflowrun"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// sweepBatch is how many attempts one sweep frees at the most, forgetBatch how many artifacts go in one transaction.
	sweepBatch  = 500
	forgetBatch = 200
	// lostAfter is how long ago a job was taken whose attempt has still not begun: its worker is dead.
	lostAfter = 30 * time.Second
)

// sweep frees, in all deployments, attempts whose lease is over, and enqueues those anew whose job died with its
// worker. What it does twice, or at the same time as the worker after all, does no harm.
func (e *Engine) sweep(ctx context.Context) error {
	now := time.Now()
	rows, err := e.store.Reader.WorkflowAttempt.Query().Where(workflowattempt.LeaseUntilLT(store.Micros(now))).
		Order(ent.Asc(workflowattempt.FieldLeaseUntil, workflowattempt.FieldID)).Limit(sweepBatch).All(tenant.System(ctx))
	if err != nil {
		return err
	}
	var problems []error
	for _, row := range rows {
		if err := e.free(tenant.NewContext(ctx, row.DeploymentID), row, now); err != nil {
			problems = append(problems, fmt.Errorf("free attempt %d: %w", row.ID, err))
		}
	}
	return errors.Join(append(problems, e.enqueueLost(ctx))...)
}

// free ends an attempt whose lease is over.
func (e *Engine) free(ctx context.Context, row *ent.WorkflowAttempt, now time.Time) error {
	run, err := e.store.Reader.WorkflowRun.Get(ctx, row.RunID)
	if err != nil {
		return err
	}
	h, err := e.hold(ctx, run, row, row.Worker)
	if err != nil {
		return err
	}
	done := outcome{status: Error, lost: true, summary: "the worker was not heard of for too long"}
	if !h.deadline.After(now) {
		done.summary = timedOut(h.step)
	}
	_, err = e.settle(ctx, nil, h, done, workflowattempt.LeaseUntilLT(store.Micros(now)))
	return err
}

// enqueueLost enqueues attempts anew whose job was taken by a worker that died before it took the attempt. The time in
// not_before keeps it from doing so at every sweep while the new job waits.
func (e *Engine) enqueueLost(ctx context.Context) error {
	queue := jobs.FromContext(ctx)
	before := time.Now().Add(-lostAfter)
	lost, err := queue.Lost(ctx, attemptArgs{}.Kind(), before)
	if err != nil {
		return err
	}
	for _, raw := range lost {
		var args attemptArgs
		if err := json.Unmarshal(raw, &args); err != nil {
			return fmt.Errorf("arguments of a lost job: %w", err)
		}
		ctx := tenant.NewContext(ctx, args.DeploymentID)
		pending, err := e.store.Reader.WorkflowAttempt.Query().Where(
			workflowattempt.ID(args.AttemptID), workflowattempt.Status(Pending), workflowattempt.NotBeforeLT(store.Micros(before))).Exist(ctx)
		if err != nil {
			return err
		}
		if !pending {
			continue
		}
		err = e.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			if run, err := e.lock(ctx, tx, args.RunID); err != nil || run == nil {
				return err // what a run that has ended leaves in the queue, nobody makes
			}
			n, err := tx.WorkflowAttempt.Update().Where(
				workflowattempt.ID(args.AttemptID), workflowattempt.Status(Pending), workflowattempt.NotBeforeLT(store.Micros(before)),
			).SetNotBefore(store.Now()).Save(ctx)
			if err != nil || n == 0 {
				return err
			}
			return queue.Enqueue(ctx, args, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forget deletes the artifacts of runs that ended before a time, in small transactions.
func (e *Engine) forget(ctx context.Context, endedBefore time.Time) error {
	ctx = tenant.System(ctx)
	for at, id := int64(0), int64(0); ; {
		runs, err := e.store.Reader.WorkflowRun.Query().Where(
			workflowrun.FinishedAtNotNil(), workflowrun.FinishedAtLT(store.Micros(endedBefore)),
			workflowrun.Or(workflowrun.FinishedAtGT(at), workflowrun.And(workflowrun.FinishedAt(at), workflowrun.IDGT(id))),
		).Order(ent.Asc(workflowrun.FieldFinishedAt, workflowrun.FieldID)).Limit(sweepBatch).
			Select(workflowrun.FieldID, workflowrun.FieldDeploymentID, workflowrun.FieldFinishedAt).All(ctx)
		if err != nil || len(runs) == 0 {
			return err
		}
		last := runs[len(runs)-1]
		at, id = *last.FinishedAt, last.ID
		if err := e.forgetRuns(ctx, runs); err != nil {
			return err
		}
	}
}

func (e *Engine) forgetRuns(ctx context.Context, runs []*ent.WorkflowRun) error {
	runIDs, deployments := make([]int64, len(runs)), make([]int64, len(runs))
	for i, run := range runs {
		runIDs[i], deployments[i] = run.ID, run.DeploymentID
	}
	slices.Sort(deployments)
	deployments = slices.Compact(deployments) // they come first, as in the index
	for {
		ids, err := e.store.Reader.WorkflowArtifact.Query().Where(store.OneOf(workflowartifact.FieldDeploymentID, deployments), func(s *entsql.Selector) {
			s.Where(store.InIDs(s.C(workflowartifact.FieldRunID), runIDs))
		}).Limit(forgetBatch).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return err
		}
		err = e.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.WorkflowArtifact.Delete().Where(func(s *entsql.Selector) {
				s.Where(store.InIDs(s.C(workflowartifact.FieldID), ids))
			}).Exec(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
}
