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
	// sweepBatch is the maximum number of attempts that one sweep frees. retentionBatch is the number of artifacts deleted
	// in one transaction.
	sweepBatch     = 500
	retentionBatch = 200
	// takeTimeout: if a job was taken this long ago and its attempt has not begun, its worker is dead.
	takeTimeout = 30 * time.Second
)

// sweep frees attempts with an expired lease in all deployments, and enqueues attempts again if their job died with its
// worker. It is idempotent and safe to run while the worker still works.
func (e *Engine) sweep(ctx context.Context) error {
	now := time.Now()
	rows, err := e.store.Reader.WorkflowAttempt.Query().Where(workflowattempt.LeaseUntilLT(store.Micros(now))).
		Order(ent.Asc(workflowattempt.FieldLeaseUntil, workflowattempt.FieldID)).Limit(sweepBatch).All(tenant.System(ctx))
	if err != nil {
		return err
	}
	var problems []error
	for _, row := range rows {
		if err := e.expire(tenant.NewContext(ctx, row.DeploymentID), row, now); err != nil {
			problems = append(problems, fmt.Errorf("free attempt %d: %w", row.ID, err))
		}
	}
	return errors.Join(append(problems, e.enqueueLost(ctx))...)
}

// expire ends an attempt with an expired lease.
func (e *Engine) expire(ctx context.Context, row *ent.WorkflowAttempt, now time.Time) error {
	run, err := e.store.Reader.WorkflowRun.Get(ctx, row.RunID)
	if err != nil {
		return err
	}
	h, err := e.load(ctx, run, row, row.Worker)
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

// enqueueLost enqueues attempts again if their job's worker died before it took the attempt. not_before keeps each
// sweep from enqueueing another job while the new one waits.
func (e *Engine) enqueueLost(ctx context.Context) error {
	queue := jobs.FromContext(ctx)
	before := time.Now().Add(-takeTimeout)
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
				return err // the run has ended: its job is not enqueued again
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

// deleteArtifacts deletes the artifacts of runs that ended before a time, in small transactions.
func (e *Engine) deleteArtifacts(ctx context.Context, endedBefore time.Time) error {
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
		if err := e.deleteRunArtifacts(ctx, runs); err != nil {
			return err
		}
	}
}

func (e *Engine) deleteRunArtifacts(ctx context.Context, runs []*ent.WorkflowRun) error {
	runIDs, deployments := make([]int64, len(runs)), make([]int64, len(runs))
	for i, run := range runs {
		runIDs[i], deployments[i] = run.ID, run.DeploymentID
	}
	slices.Sort(deployments)
	deployments = slices.Compact(deployments) // the deployment is the first column of the index
	for {
		ids, err := e.store.Reader.WorkflowArtifact.Query().Where(store.OneOf(workflowartifact.FieldDeploymentID, deployments), func(s *entsql.Selector) {
			s.Where(store.InIDs(s.C(workflowartifact.FieldRunID), runIDs))
		}).Limit(retentionBatch).IDs(ctx)
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
