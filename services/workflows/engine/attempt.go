package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowartifact"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/ent/workflowtask"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/workflows/step"
)

// Causes for which the context of a step ends before the step does.
var (
	errTimeOut = errors.New("the time of the step is up")
	errLost    = errors.New("the attempt no longer belongs to this worker")
	errPanic   = errors.New("the step failed inside")
)

// errTransient is not a failure of the step: the step did not run, or its result could not be processed yet.
var errTransient = errors.New("the server could not read what the step needs")

// transient marks database errors.
func transient(err error) error {
	if err == nil || step.IsPermanent(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errTransient, err)
}

// leasedAttempt is an attempt that a worker has taken under a lease.
type leasedAttempt struct {
	*program
	reads   reads
	run     *ent.WorkflowRun
	task    *ent.WorkflowTask
	attempt *ent.WorkflowAttempt
	step    *storev1.PlannedStep
	kind    step.Kind
	worker  string
	// until is the end of the lease when it was taken.
	until, deadline time.Time
}

// attempt runs one attempt. After an error the queue retries the job.
func (e *Engine) attempt(ctx context.Context, id int64) error {
	h, err := e.acquire(ctx, id, e.node+"/"+rand.Text(), lease)
	if err != nil || h == nil {
		return err
	}
	ctx = telemetry.WithAttrs(ctx, slog.Int64("workflow_run", h.run.ID), slog.String("workflow_step", h.step.GetName()))
	done := e.perform(ctx, h)
	if done.dropped {
		e.log.InfoContext(ctx, "a workflow attempt no longer belonged to this worker, its result is dropped", "attempt", h.attempt.ID)
	}
	return e.settleWithRetry(ctx, h, done)
}

// settleWithRetry ends the attempt even while the server stops or the database is briefly busy. If the worker has lost
// the attempt, only the cost is counted.
func (e *Engine) settleWithRetry(ctx context.Context, h *leasedAttempt, done outcome) error {
	const tries, patience, pause = 3, 4 * time.Second, time.Second
	for try := 1; ; try++ {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(try)*patience)
		settled, err := false, error(nil)
		if !done.dropped {
			settled, err = e.settle(ending, nil, h, done)
		}
		if err == nil && !settled {
			err = e.charge(ending, h, done.cost())
		}
		cancel()
		if err == nil || try == tries || ctx.Err() != nil && try > 1 {
			return err
		}
		e.log.WarnContext(ctx, "the end of a workflow attempt could not be stored; trying again", "attempt", h.attempt.ID, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(try) * pause):
		}
	}
}

// acquire takes the lease of an attempt for this worker. It returns nil if the attempt is no longer waiting.
func (e *Engine) acquire(ctx context.Context, id int64, worker string, lease time.Duration) (*leasedAttempt, error) {
	attempt, err := e.store.Reader.WorkflowAttempt.Get(ctx, id)
	if ent.IsNotFound(err) || err == nil && attempt.Status != Pending {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	run, err := e.store.Reader.WorkflowRun.Get(ctx, attempt.RunID)
	if err != nil {
		return nil, err
	}
	h, err := e.load(ctx, run, attempt, worker)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	h.deadline = now.Add(timeout(h.step))
	until := leaseEnd(now, lease, h.deadline)
	h.until = store.Time(until)
	taken := false
	err = e.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		run, err := e.lock(ctx, tx, run.ID)
		if err != nil || run == nil {
			return err
		}
		n, err := tx.WorkflowAttempt.Update().Where(workflowattempt.ID(id), workflowattempt.Status(Pending)).
			SetStatus(Running).SetWorker(worker).SetStartedAt(store.Micros(now)).SetDeadline(store.Micros(h.deadline)).
			SetLeaseUntil(until).Save(ctx)
		if taken = n == 1; err != nil || !taken {
			return err
		}
		change := run.Update().AddRevision(1)
		if run.Status == Submitted {
			change.SetStatus(Running).SetStartedAt(store.Micros(now))
		}
		if h.run, err = change.Save(ctx); err != nil {
			return err
		}
		if attempt.Index > 0 { // discard artifacts of earlier attempts
			if _, err := tx.WorkflowArtifact.Delete().Where(workflowartifact.TaskID(attempt.TaskID)).Exec(ctx); err != nil {
				return err
			}
		}
		task := tx.WorkflowTask.Update().Where(workflowtask.ID(attempt.TaskID)).SetStatus(Running)
		if attempt.Index == 0 {
			task.SetStartedAt(store.Micros(now))
		}
		return task.Exec(ctx)
	})
	if err != nil || !taken {
		return nil, err
	}
	return h, nil
}

// load loads the data that an attempt needs.
func (e *Engine) load(ctx context.Context, run *ent.WorkflowRun, attempt *ent.WorkflowAttempt, worker string) (*leasedAttempt, error) {
	p, err := e.program(ctx, run.VersionID)
	if err != nil {
		return nil, err
	}
	task, err := e.store.Reader.WorkflowTask.Get(ctx, attempt.TaskID)
	if err != nil {
		return nil, err
	}
	s := p.graph.Step(attempt.Step)
	if s == nil {
		return nil, fmt.Errorf("the plan of run %d has no step %s", run.ID, attempt.Step)
	}
	h := &leasedAttempt{
		program: p, reads: p.reads[s.GetName()], run: run, task: task, attempt: attempt, step: s, kind: e.kinds[kindName(s)], worker: worker,
	}
	if attempt.Deadline != nil {
		h.deadline = store.Time(*attempt.Deadline)
	}
	return h, nil
}

// kindName returns the step's kind. Steps that only shape the graph use pass.
func kindName(s *storev1.PlannedStep) string {
	if s.GetUses() == "" {
		return "pass"
	}
	return s.GetUses()
}

func timeout(s *storev1.PlannedStep) time.Duration {
	if seconds := s.GetTimeoutSeconds(); seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return defaultTimeout
}

// leaseEnd returns the expiry of a lease. It is shortly after the deadline at the latest, so that a step that ignores
// its timeout does not block the task.
func leaseEnd(now time.Time, lease time.Duration, deadline time.Time) int64 {
	end := now.Add(lease)
	if last := deadline.Add(grace); end.After(last) {
		end = last
	}
	return store.Micros(end)
}

// perform runs the step under a context that ends with the step's timeout, the lease or the run.
func (e *Engine) perform(ctx context.Context, h *leasedAttempt) outcome {
	kept, release := e.keepLease(ctx, h)
	defer release()
	result, err := e.work(kept, h)
	switch cause := context.Cause(kept); {
	case errors.Is(cause, errLost):
		return outcome{dropped: true, result: step.Result{CostUSD: result.CostUSD}}
	case err == nil:
		// A finished result counts even if the server is stopping.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), heartbeat)
		defer cancel()
		done, err := e.conclude(ctx, h, result)
		if err == nil {
			return done
		}
		return e.failure(ctx, err, result.CostUSD)
	case errors.Is(err, errPanic):
		return outcome{status: Error, summary: errPanic.Error(), lost: true, result: step.Result{CostUSD: result.CostUSD}}
	case errors.Is(cause, errTimeOut):
		return outcome{status: Error, summary: timedOut(h.step), lost: true, result: step.Result{CostUSD: result.CostUSD}}
	case ctx.Err() != nil:
		return outcome{status: Error, summary: "the server was stopped", stopped: true, result: step.Result{CostUSD: result.CostUSD}}
	}
	return e.failure(ctx, err, result.CostUSD)
}

func timedOut(s *storev1.PlannedStep) string {
	return fmt.Sprintf("the step took longer than its time-out of %s", timeout(s))
}

// work evaluates the parameters and runs the step. It recovers panics, so that a step cannot crash the server.
func (e *Engine) work(ctx context.Context, h *leasedAttempt) (result step.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.ErrorContext(ctx, "a workflow step panicked", "kind", h.step.GetUses(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	call, err := e.call(ctx, h)
	if err != nil {
		return step.Result{}, err
	}
	return h.kind.Run(ctx, call)
}

// call builds the step's input.
func (e *Engine) call(ctx context.Context, h *leasedAttempt) (step.Call, error) {
	if h.kind.Name == "" {
		return step.Call{}, step.Permanent("this server has no step kind %q", h.step.GetUses())
	}
	scope, err := e.scope(ctx, h)
	if err != nil {
		return step.Call{}, transient(err)
	}
	with, err := render(h.step, scope)
	if err != nil {
		return step.Call{}, err
	}
	if h.kind.Check != nil {
		if err := h.kind.Check(with); err != nil {
			return step.Call{}, step.Permanent("%w", err)
		}
	}
	return step.Call{
		DeploymentID: h.run.DeploymentID, RunID: h.run.ID, TaskID: h.task.ID, Attempt: h.attempt.Index, Workflow: h.run.Workflow,
		Step: h.step.GetName(), Path: h.task.Path, ProjectID: h.run.ProjectID, GitRef: h.run.GitRef, TriggerSource: h.run.TriggerSource,
		With: with,
		Artifact: func(ctx context.Context, taskID int64, name string) ([]byte, error) {
			return readArtifact(ctx, e.store.Reader, h.run.ID, taskID, name)
		},
	}, nil
}

// keepLease renews the lease of an attempt until release is called. The returned context ends at the step's timeout,
// and when the worker loses the attempt because the run ended or the lease expired.
func (e *Engine) keepLease(parent context.Context, h *leasedAttempt) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ctx, stop := context.WithDeadlineCause(ctx, h.deadline, errTimeOut)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		ticker := time.NewTicker(watch)
		defer ticker.Stop()
		until := time.Now().Add(lease)
		for next := time.Now().Add(heartbeat); ; {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				owned, err := e.checkLease(ctx, h, now, now.After(next))
				switch {
				case err == nil && !owned, err != nil && now.After(until):
					cancel(errLost)
				case err == nil && now.After(next):
					next, until = now.Add(heartbeat), now.Add(lease)
				}
			}
		}
	}()
	return ctx, func() {
		stop()
		cancel(nil)
		<-gone
	}
}

// checkLease checks whether a worker still owns its attempt, and renews the lease if that is due.
func (e *Engine) checkLease(ctx context.Context, h *leasedAttempt, now time.Time, extend bool) (owned bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	if !extend {
		return e.store.Reader.WorkflowAttempt.Query().Where(runningUnder(h.attempt.ID, h.worker)...).Exist(ctx)
	}
	return e.extend(ctx, h.attempt.ID, h.worker, leaseEnd(now, lease, h.deadline))
}
