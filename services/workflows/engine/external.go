package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflowartifact"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/ent/workflowrun"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/step"
)

const (
	// claimPoll is how often a waiting caller polls for a task.
	claimPoll = 500 * time.Millisecond
	// claimBatch is how many tasks a caller tries when other callers take the first ones.
	claimBatch = 20
)

// Wanted selects the tasks that a worker of an internal service can do.
type Wanted struct {
	// Workflow and Steps are names; empty matches all.
	Workflow string
	Steps    []string
	// Lease is how long the claim is valid without a heartbeat.
	Lease time.Duration
	// Wait is the maximum time to wait for a task.
	Wait time.Duration
}

// Claim is a task that an internal service has claimed.
type Claim struct {
	Task    *ent.WorkflowTask
	Run     *ent.WorkflowRun
	Attempt int32
	// Token proves the claim. Only its hash is stored.
	Token    string
	Payload  any
	Lease    time.Time
	Deadline time.Time
}

// Claim takes a matching task; nil if none became available in time. Runs take turns, and each gives its oldest task.
// If a task's parameters cannot be evaluated, the task fails and the next one is tried.
func (e *Engine) Claim(ctx context.Context, queue *jobs.Jobs, want Wanted) (*Claim, error) {
	ticker := time.NewTicker(claimPoll)
	defer ticker.Stop()
	for until := time.Now().Add(want.Wait); ; {
		claim, err := e.claimOne(ctx, queue, want)
		if err != nil || claim != nil || !time.Now().Add(claimPoll).Before(until) {
			return claim, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

func (e *Engine) claimOne(ctx context.Context, queue *jobs.Jobs, want Wanted) (*Claim, error) {
	rows, err := e.nextTurn(ctx, want)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		token := rand.Text()
		h, err := e.acquire(ctx, row.ID, hashOf(token), want.Lease)
		if err != nil {
			return nil, err
		}
		if h == nil {
			continue // another caller claimed it
		}
		call, err := e.call(ctx, h)
		if err != nil {
			if _, err := e.settle(context.WithoutCancel(ctx), queue, h, e.failure(ctx, err, 0)); err != nil {
				return nil, err
			}
			continue
		}
		return &Claim{
			Task: h.task, Run: h.run, Attempt: h.attempt.Index, Token: token, Payload: call.With["payload"], Lease: h.until, Deadline: h.deadline,
		}, nil
	}
	return nil, nil
}

// nextTurn finds claimable attempts, first from the run after the last one served, then from the runs after it. Each
// node stores the last run for each set of criteria, so a run with many tasks does not starve the others.
func (e *Engine) nextTurn(ctx context.Context, want Wanted) ([]*ent.WorkflowAttempt, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	// A hash bounds the key: there may be many steps.
	turn := hashOf(fmt.Sprintf("%d %q %q %s", deploymentID, want.Workflow, want.Steps, tenant.Visibility(ctx)))
	last, _ := e.turns.Get(turn)
	rows, err := e.claimable(ctx, want, workflowattempt.RunIDGT(last))
	if err == nil && len(rows) == 0 && last > 0 {
		rows, err = e.claimable(ctx, want, workflowattempt.RunIDLTE(last))
	}
	if err == nil && len(rows) > 0 {
		e.turns.Add(turn, rows[0].RunID)
	}
	return rows, err
}

// claimable reads attempts in index order.
func (e *Engine) claimable(ctx context.Context, want Wanted, runs predicate.WorkflowAttempt) ([]*ent.WorkflowAttempt, error) {
	query := e.store.Reader.WorkflowAttempt.Query().Where(
		workflowattempt.External(true), workflowattempt.Status(Pending), workflowattempt.FinishedAtIsNil(), runs,
		workflowattempt.NotBeforeLTE(store.Now()),
	)
	if want.Workflow != "" {
		query.Where(workflowattempt.Workflow(want.Workflow))
	}
	if len(want.Steps) > 0 {
		query.Where(store.OneOf(workflowattempt.FieldStep, want.Steps))
	}
	if _, limited := tenant.Teams(ctx); limited {
		query.Where(ofVisibleRuns(ctx))
	}
	query.Order(ent.Asc(workflowattempt.FieldRunID, workflowattempt.FieldID)).Limit(claimBatch)
	query.Select(workflowattempt.FieldID, workflowattempt.FieldRunID)
	return query.All(ctx)
}

// ofVisibleRuns restricts attempts to runs that the caller may see (see tenant.WithTeams).
func ofVisibleRuns(ctx context.Context) predicate.WorkflowAttempt {
	return func(s *entsql.Selector) {
		deploymentID, _ := tenant.FromContext(ctx)
		runs := entsql.Table(workflowrun.Table).As("visible_runs")
		s.Where(entsql.In(s.C(workflowattempt.FieldRunID), entsql.Dialect(s.Dialect()).Select(runs.C(workflowrun.FieldID)).From(runs).Where(entsql.And(
			entsql.EQ(runs.C(workflowrun.FieldDeploymentID), deploymentID),
			tenant.InVisibleProjects(ctx, s, runs.C(workflowrun.FieldProjectID)),
		))))
	}
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// claimed finds the attempt that a token claims. It rejects an expired claim, because another worker may have the task.
func (e *Engine) claimed(ctx context.Context, db *ent.Client, taskID int64, token string) (*ent.WorkflowAttempt, error) {
	task, err := db.WorkflowTask.Get(ctx, taskID)
	if err == nil { // a run is not found if the caller may not see its project
		_, err = db.WorkflowRun.Query().Where(workflowrun.ID(task.RunID)).OnlyID(ctx)
	}
	if ent.IsNotFound(err) || err == nil && !task.External {
		return nil, apierr.NotFound("task %d not found", taskID)
	}
	if err != nil {
		return nil, err
	}
	query := db.WorkflowAttempt.Query().Where(
		workflowattempt.TaskID(taskID), workflowattempt.Status(Running), workflowattempt.Worker(hashOf(token)),
		workflowattempt.LeaseUntilGT(store.Now()), workflowattempt.DeadlineGT(store.Now()),
	)
	if _, inside := e.store.Tx(ctx); inside && e.store.Postgres() {
		query.ForUpdate() // calls with the same claim run one at a time, and none runs after the claim ends
	}
	attempt, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, claimOver(taskID)
	}
	return attempt, err
}

func claimOver(taskID int64) error {
	return apierr.FailedPrecondition("claimToken no longer claims task %d: its lease or timeout has expired, or the run has ended", taskID)
}

// Heartbeat renews a claim's lease. It returns the new expiry.
func (e *Engine) Heartbeat(ctx context.Context, taskID int64, token string, lease time.Duration) (time.Time, error) {
	attempt, err := e.claimed(ctx, e.store.Reader, taskID, token)
	if err != nil {
		return time.Time{}, err
	}
	until := leaseEnd(time.Now(), lease, store.Time(*attempt.Deadline))
	owned, err := e.extend(ctx, attempt.ID, attempt.Worker, until)
	if err == nil && !owned {
		err = claimOver(taskID)
	}
	return store.Time(until), err
}

// Put stores an artifact of a claimed task.
func (e *Engine) Put(ctx context.Context, taskID int64, token, name string, content []byte) error {
	artifact := pack(name, content)
	return e.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		attempt, err := e.claimed(ctx, tx.Client(), taskID, token)
		if err != nil {
			return err
		}
		sizes, err := tx.WorkflowArtifact.Query().Where(workflowartifact.TaskID(taskID), workflowartifact.NameNEQ(name)).
			Select(workflowartifact.FieldSize).Ints(ctx)
		if err != nil {
			return err
		}
		sum := len(content)
		for _, size := range sizes {
			sum += size
		}
		if sum > step.MaxArtifacts {
			return apierr.TooLarge("the artifacts of task %d would have %d bytes together, want at most %d", taskID, sum, step.MaxArtifacts)
		}
		return storeArtifacts(ctx, tx, attempt.RunID, taskID, []packed{artifact})
	})
}

// Report is the result of a task from an internal service.
type Report struct {
	Succeeded bool
	// Permanent: do not retry.
	Permanent bool
	Output    json.RawMessage
	CostUSD   float64
	// Summary is the reason of a failure.
	Summary string
}

// Complete ends a claimed attempt. An output that the graph cannot use makes it a failure.
func (e *Engine) Complete(ctx context.Context, queue *jobs.Jobs, taskID int64, token string, report Report) error {
	attempt, err := e.claimed(ctx, e.store.Reader, taskID, token)
	if err != nil {
		return err
	}
	run, err := e.store.Reader.WorkflowRun.Get(ctx, attempt.RunID)
	if err != nil {
		return err
	}
	h, err := e.load(ctx, run, attempt, attempt.Worker)
	if err != nil {
		return err
	}
	done := outcome{status: Failed, permanent: report.Permanent, summary: oneLine(report.Summary), result: step.Result{CostUSD: report.CostUSD}}
	if done.summary == "" {
		done.summary = "the worker gave no reason"
	}
	if report.Succeeded {
		if len(report.Output) > step.MaxOutput {
			return apierr.InvalidArgument("output", "output has %d bytes of JSON, want at most %d", len(report.Output), step.MaxOutput)
		}
		done, err = e.conclude(ctx, h, step.Result{Output: report.Output, CostUSD: report.CostUSD})
		if errors.Is(err, errTransient) { // the caller can retry
			return err
		}
		if err != nil {
			done = e.failure(ctx, err, report.CostUSD)
		}
	}
	settled, err := e.settle(ctx, queue, h, done)
	if err == nil && !settled {
		err = claimOver(taskID)
	}
	return err
}
