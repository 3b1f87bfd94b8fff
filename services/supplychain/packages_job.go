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
	// tidyAgain is how soon it is done again where dependencies were found that lists by package do not see: a node of the
	// version before has stored them, and goes on.
	tidyAgain = time.Minute
	// tidyTimeout leaves room for many millions of dependencies.
	tidyTimeout = 10 * time.Minute
	// packagesQueue is for that job alone: versions before it was there share the other queues, and would fail it.
	packagesQueue = "dependency_packages"
	// packagesPoll is how long it waits at most until it is seen.
	packagesPoll = 15 * time.Second
)

// Background is what lists of dependencies need done when nobody calls.
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

// InsertOpts keep runs from piling up while no node works.
func (tidyPackages) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = packagesQueue
	return opts
}

type tidyWorker struct {
	river.WorkerDefaults[tidyPackages]
	store *store.Store
}

// Timeout is how long a run may take.
func (*tidyWorker) Timeout(*river.Job[tidyPackages]) time.Duration { return tidyTimeout }

// Work makes the packages those of the dependencies.
func (w *tidyWorker) Work(ctx context.Context, _ *river.Job[tidyPackages]) error {
	added, err := dependencies.Tidy(ctx, w.store)
	if err == nil && added {
		return river.JobSnooze(tidyAgain)
	}
	return err
}
