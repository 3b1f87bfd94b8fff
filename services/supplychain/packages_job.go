package supplychain

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain/dependencies"
)

const (
	// tidyInterval is how often the packages are compared with the dependencies.
	tidyInterval = time.Hour
	// tidyAgain is the interval after dependencies without packages were found: a node of the previous version stored them
	// and may store more.
	tidyAgain = time.Minute
	// tidyTimeout is enough for many millions of dependencies.
	tidyTimeout = 10 * time.Minute
	// packagesQueue is used by this job only: older versions share the other queues and would fail an unknown job.
	packagesQueue = "dependency_packages"
	// packagesPoll is the maximum time until the job is seen.
	packagesPoll = 15 * time.Second
)

// Background returns the background work for lists of dependencies.
func Background(st *store.Store) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) { jobs.AddWorker(workers, &tidyWorker{store: st}) },
		Queues:   []jobs.Queue{{Name: packagesQueue, Workers: 1, Poll: packagesPoll}},
		Periodic: []*river.PeriodicJob{jobs.Every(tidyInterval, tidyPackages{})},
	}
}

// tidyPackages is the periodic job.
type tidyPackages struct{}

// Kind is the name in the queue.
func (tidyPackages) Kind() string { return "tidy_packages" }

// InsertOpts keeps jobs from piling up while no node works.
func (tidyPackages) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = packagesQueue
	return opts
}

type tidyWorker struct {
	river.WorkerDefaults[tidyPackages]
	store *store.Store
}

// Timeout is the maximum duration of a run.
func (*tidyWorker) Timeout(*river.Job[tidyPackages]) time.Duration { return tidyTimeout }

// Work updates the packages to match the dependencies.
func (w *tidyWorker) Work(ctx context.Context, _ *river.Job[tidyPackages]) error {
	added, err := dependencies.Tidy(ctx, w.store)
	if err == nil && added {
		return river.JobSnooze(tidyAgain)
	}
	return err
}
