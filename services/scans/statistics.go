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
	// growthInterval is how often tables are checked for growth by many small uploads.
	growthInterval = 15 * time.Second
	// growthQueue is for this job only. An analysis may take a while, and other jobs must not wait for it. Older
	// versions of the server do not know the job, so it must not be in a queue that they serve.
	growthQueue = "statistics"
	// growthPoll is the longest delay until the job is picked up.
	growthPoll = 5 * time.Second
)

// StatisticsBackground returns the job that refreshes planner statistics as tables grow.
func StatisticsBackground(st *store.Store) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) { jobs.AddWorker(workers, &growthWorker{store: st}) },
		Queues:   []jobs.Queue{{Name: growthQueue, Workers: 1, Poll: growthPoll}},
		Periodic: []*river.PeriodicJob{jobs.Every(growthInterval, grownTables{})},
	}
}

// grownTables is the periodic job.
type grownTables struct{}

// Kind implements river.JobArgs.
func (grownTables) Kind() string { return "grown_tables" }

// InsertOpts prevents runs from piling up while no node works. There are no retries: the next run does the work.
func (grownTables) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue, opts.MaxAttempts = growthQueue, 1
	return opts
}

type growthWorker struct {
	river.WorkerDefaults[grownTables]
	store *store.Store
}

// Timeout limits a run.
func (*growthWorker) Timeout(*river.Job[grownTables]) time.Duration { return statisticsTimeout }

// Work refreshes the statistics of tables that have grown. If another job maintains the tables, or an import holds the
// writer, it leaves the work to the next run.
func (w *growthWorker) Work(ctx context.Context, _ *river.Job[grownTables]) error {
	_, err := w.store.RefreshGrown(ctx)
	if errors.Is(err, store.ErrBusy) {
		return nil
	}
	return err
}
