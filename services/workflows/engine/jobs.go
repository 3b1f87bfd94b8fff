package engine

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
)

const (
	// attemptQueue is a separate queue, because steps may be slow.
	attemptQueue   = "workflows"
	attemptWorkers = 16
	attemptPoll    = 200 * time.Millisecond
	// upkeepQueue is the queue of the sweep. It must run even if all attempt workers are busy.
	upkeepQueue       = "workflow_upkeep"
	sweepInterval     = 10 * time.Second
	retentionInterval = time.Hour
	// attemptTimeout is the queue's timeout. The engine's step timeouts end earlier.
	attemptTimeout = 25 * time.Hour
)

// Background returns the engine's background work. It deletes the artifacts of runs that ended longer ago than
// retention.
func (e *Engine) Background(retention time.Duration) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &attemptWorker{engine: e})
			jobs.AddWorker(workers, &sweepWorker{engine: e})
			jobs.AddWorker(workers, &retentionWorker{engine: e, retention: retention})
		},
		Periodic: []*river.PeriodicJob{
			jobs.Every(sweepInterval, sweepArgs{}),
			jobs.Every(retentionInterval, retentionArgs{}),
		},
		Queues: []jobs.Queue{
			{Name: attemptQueue, Workers: attemptWorkers, Poll: attemptPoll},
			{Name: upkeepQueue, Workers: 1},
		},
	}
}

// attemptArgs is the job of one attempt.
type attemptArgs struct {
	DeploymentID int64 `json:"deployment_id"`
	RunID        int64 `json:"run_id"`
	TaskID       int64 `json:"task_id"`
	AttemptID    int64 `json:"attempt_id"`
}

// Kind is the name in the queue.
func (attemptArgs) Kind() string { return "workflow_attempt" }

// InsertOpts sets the queue.
func (attemptArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: attemptQueue} }

type attemptWorker struct {
	river.WorkerDefaults[attemptArgs]
	engine *Engine
}

// Timeout leaves the timeout to the step.
func (*attemptWorker) Timeout(*river.Job[attemptArgs]) time.Duration { return attemptTimeout }

// Work runs the attempt, unless another worker has taken it.
func (w *attemptWorker) Work(ctx context.Context, job *river.Job[attemptArgs]) error {
	return w.engine.attempt(tenant.NewContext(ctx, job.Args.DeploymentID), job.Args.AttemptID)
}

// sweepArgs is the job that frees the attempts of dead workers.
type sweepArgs struct{}

// Kind is the name in the queue.
func (sweepArgs) Kind() string { return "workflow_sweep" }

// InsertOpts keeps jobs from piling up while no node works.
func (sweepArgs) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = upkeepQueue
	return opts
}

type sweepWorker struct {
	river.WorkerDefaults[sweepArgs]
	engine *Engine
}

// Work runs one sweep.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[sweepArgs]) error {
	return w.engine.sweep(ctx)
}

// retentionArgs is the job that deletes old artifacts.
type retentionArgs struct{}

// Kind is the name in the queue.
func (retentionArgs) Kind() string { return "workflow_artifact_retention" }

// InsertOpts keeps jobs from piling up while no node works.
func (retentionArgs) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type retentionWorker struct {
	river.WorkerDefaults[retentionArgs]
	engine    *Engine
	retention time.Duration
}

// Work deletes the artifacts of old runs.
func (w *retentionWorker) Work(ctx context.Context, _ *river.Job[retentionArgs]) error {
	return w.engine.deleteArtifacts(ctx, time.Now().Add(-w.retention))
}
