package scans

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// growthInterval is how often tables are looked at that many small uploads may have made large.
	growthInterval = 15 * time.Second
	// growthQueue is for that job alone: an analysis may take a while, and versions before it was there share the other
	// queues.
	growthQueue = "statistics"
	// growthPoll is how long it waits at most until it is seen.
	growthPoll = 5 * time.Second
)

// StatisticsBackground refreshes planner statistics as tables grow, whatever makes them grow.
func StatisticsBackground(st *store.Store) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) { jobs.AddWorker(workers, &growthWorker{store: st}) },
		Queues:   []jobs.Queue{{Name: growthQueue, Workers: 1, Poll: growthPoll}},
		Periodic: []*river.PeriodicJob{jobs.Every(growthInterval, grownTables{})},
	}
}

// grownTables is the periodic job.
type grownTables struct{}

// Kind is the name in the queue.
func (grownTables) Kind() string { return "grown_tables" }

// InsertOpts keep runs from piling up while no node works. What fails is left to the next run.
func (grownTables) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue, opts.MaxAttempts = growthQueue, 1
	return opts
}

type growthWorker struct {
	river.WorkerDefaults[grownTables]
	store *store.Store
}

// Timeout is how long a run may take.
func (*growthWorker) Timeout(*river.Job[grownTables]) time.Duration { return statisticsTimeout }

// Work refreshes what has grown. Where others look after the tables, or an import holds the writer, the next run does.
func (w *growthWorker) Work(ctx context.Context, _ *river.Job[grownTables]) error {
	_, err := w.store.RefreshGrown(ctx)
	if errors.Is(err, store.ErrBusy) {
		return nil
	}
	return err
}
