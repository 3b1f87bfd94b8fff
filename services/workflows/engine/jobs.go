package engine

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
)

const (
	// attemptQueue is where attempts wait, apart from all other work: steps may be slow.
	attemptQueue   = "workflows"
	attemptWorkers = 16
	attemptPoll    = 200 * time.Millisecond
	// upkeepQueue is where what frees lost attempts waits: it must run also when all workers of attempts are busy.
	upkeepQueue    = "workflow_upkeep"
	sweepInterval  = 10 * time.Second
	forgetInterval = time.Hour
	// attemptTimeout is for the queue: the time-outs of steps, which end earlier, are ours.
	attemptTimeout = 25 * time.Hour
)

// Background is what the engine does when nobody calls. The artifacts of runs that ended longer ago than retention are
// deleted.
func (e *Engine) Background(retention time.Duration) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &attemptWorker{engine: e})
			jobs.AddWorker(workers, &sweepWorker{engine: e})
			jobs.AddWorker(workers, &forgetWorker{engine: e, retention: retention})
		},
		Periodic: []*river.PeriodicJob{
			jobs.Every(sweepInterval, sweepArgs{}),
			jobs.Every(forgetInterval, forgetArgs{}),
		},
		Queues: []jobs.Queue{
			{Name: attemptQueue, Workers: attemptWorkers, Poll: attemptPoll},
			{Name: upkeepQueue, Workers: 1},
		},
	}
}

// attemptArgs are the job of one attempt.
type attemptArgs struct {
	DeploymentID int64 `json:"deployment_id"`
	RunID        int64 `json:"run_id"`
	TaskID       int64 `json:"task_id"`
	AttemptID    int64 `json:"attempt_id"`
}

// Kind is the name in the queue.
func (attemptArgs) Kind() string { return "workflow_attempt" }

// InsertOpts name the queue.
func (attemptArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: attemptQueue} }

type attemptWorker struct {
	river.WorkerDefaults[attemptArgs]
	engine *Engine
}

// Timeout leaves the time to the step.
func (*attemptWorker) Timeout(*river.Job[attemptArgs]) time.Duration { return attemptTimeout }

// Work makes the attempt, unless somebody else has.
func (w *attemptWorker) Work(ctx context.Context, job *river.Job[attemptArgs]) error {
	return w.engine.attempt(tenant.NewContext(ctx, job.Args.DeploymentID), job.Args.AttemptID)
}

// sweepArgs are the job that frees what dead workers hold.
type sweepArgs struct{}

// Kind is the name in the queue.
func (sweepArgs) Kind() string { return "workflow_sweep" }

// InsertOpts keep runs from piling up while no node works.
func (sweepArgs) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = upkeepQueue
	return opts
}

type sweepWorker struct {
	river.WorkerDefaults[sweepArgs]
	engine *Engine
}

// Work frees what is due.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[sweepArgs]) error {
	return w.engine.sweep(ctx)
}

// forgetArgs are the job that deletes old artifacts.
type forgetArgs struct{}

// Kind is the name in the queue.
func (forgetArgs) Kind() string { return "workflow_artifact_retention" }

// InsertOpts keep runs from piling up while no node works.
func (forgetArgs) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type forgetWorker struct {
	river.WorkerDefaults[forgetArgs]
	engine    *Engine
	retention time.Duration
}

// Work deletes the artifacts of old runs.
func (w *forgetWorker) Work(ctx context.Context, _ *river.Job[forgetArgs]) error {
	return w.engine.forget(ctx, time.Now().Add(-w.retention))
}
