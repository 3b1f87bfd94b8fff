package watch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/internal/jobs"
)

const (
	// watchInterval is how often time is looked at. The shortest usual time until an analysis is late is two days.
	watchInterval = 5 * time.Minute
	// catchUpInterval is how often scans are searched that did not update their freshness.
	catchUpInterval = time.Hour
	// catchUpTimeout allows for the first run after an upgrade. An aborted run keeps its progress.
	catchUpTimeout = time.Hour
	// watchQueue is a queue of its own, so that nodes of earlier versions do not claim these jobs during an upgrade.
	watchQueue   = "freshness"
	watchWorkers = 2
)

// Background returns the jobs of freshness.
func Background(w *Watch, log *slog.Logger) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &watchWorker{watch: w})
			jobs.AddWorker(workers, &catchUpWorker{watch: w, log: log})
		},
		Queues:   []jobs.Queue{{Name: watchQueue, Workers: watchWorkers}},
		Periodic: []*river.PeriodicJob{jobs.Every(watchInterval, watchArgs{}), jobs.Every(catchUpInterval, catchUpArgs{})},
	}
}

// once enqueues a job that waits at most once.
func once() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = watchQueue
	return opts
}

// watchArgs is the periodic job that does what no scan tells.
type watchArgs struct{}

// Kind implements river.JobArgs.
func (watchArgs) Kind() string { return "watch_freshness" }

// InsertOpts prevents runs from piling up while no node works.
func (watchArgs) InsertOpts() river.InsertOpts { return once() }

type watchWorker struct {
	river.WorkerDefaults[watchArgs]
	watch *Watch
}

// Work adds failed scans, and then looks at the time.
func (w *watchWorker) Work(ctx context.Context, _ *river.Job[watchArgs]) error {
	queue, now := jobs.FromContext(ctx), time.Now()
	return errors.Join(w.watch.Failed(ctx, queue, now), w.watch.Due(ctx, queue, now))
}

// catchUpArgs is the periodic job that adds scans which did not update their freshness.
type catchUpArgs struct{}

// Kind implements river.JobArgs.
func (catchUpArgs) Kind() string { return "catch_up_freshness" }

// InsertOpts prevents runs from piling up while no node works.
func (catchUpArgs) InsertOpts() river.InsertOpts { return once() }

type catchUpWorker struct {
	river.WorkerDefaults[catchUpArgs]
	watch *Watch
	log   *slog.Logger
}

// Timeout limits a run.
func (*catchUpWorker) Timeout(*river.Job[catchUpArgs]) time.Duration { return catchUpTimeout }

// Work implements river.Worker.
func (w *catchUpWorker) Work(ctx context.Context, _ *river.Job[catchUpArgs]) error {
	n, err := w.watch.CatchUp(ctx, jobs.FromContext(ctx), time.Now())
	if n > 0 {
		w.log.InfoContext(ctx, "the freshness of projects was computed from their scans", "projects", n)
	}
	return err
}
