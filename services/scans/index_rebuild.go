package scans

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// rebuildHour is the hour (UTC) at which indexes are rebuilt that imports left half empty.
	rebuildHour = 3
	// rebuildTimeout ends a run before that of the next night. Without one River would take a run for lost after about an hour.
	rebuildTimeout = 20 * time.Hour
	// rebuildQueue is for that job alone: it may take hours, and nobody waits for it.
	rebuildQueue = "index_rebuild"
	// rebuildPoll is how long it waits at most until it is seen.
	rebuildPoll = 15 * time.Second
)

// IndexBackground rebuilds bloated indexes at night; only PostgreSQL has them. Should two nodes be at it, because the leader of the
// queue was lost at the wrong moment or a run took longer than a day, they take turns: see store.RebuildIndexes.
func IndexBackground(st *store.Store, log *slog.Logger) jobs.Work {
	if !st.Postgres() {
		return jobs.Work{}
	}
	return jobs.Work{
		Register: func(workers *river.Workers) { jobs.AddWorker(workers, &rebuildWorker{store: st, log: log}) },
		Queues:   []jobs.Queue{{Name: rebuildQueue, Workers: 1, Poll: rebuildPoll}},
		Periodic: []*river.PeriodicJob{jobs.Nightly(rebuildHour, rebuildIndexes{})},
	}
}

// rebuildIndexes is the nightly job.
type rebuildIndexes struct{}

// Kind is the name in the queue.
func (rebuildIndexes) Kind() string { return "rebuild_indexes" }

// InsertOpts keep runs from piling up while no node works. What fails is left to the next night.
func (rebuildIndexes) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue, opts.MaxAttempts = rebuildQueue, 1
	return opts
}

type rebuildWorker struct {
	river.WorkerDefaults[rebuildIndexes]
	store *store.Store
	log   *slog.Logger
}

// Timeout is how long a run may take.
func (*rebuildWorker) Timeout(*river.Job[rebuildIndexes]) time.Duration { return rebuildTimeout }

// Work rebuilds them. A stop of the server ends it when the grace period is over.
func (w *rebuildWorker) Work(ctx context.Context, _ *river.Job[rebuildIndexes]) error {
	rebuilt, err := w.store.RebuildIndexes(ctx)
	for _, index := range rebuilt {
		w.log.InfoContext(ctx, "an index was rebuilt", "index", index.Name, "bytes_before", index.Before, "bytes_after", index.After)
	}
	return err
}
