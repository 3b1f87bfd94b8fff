package findings

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/findings/list"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// cursorsQueue is the queue of expireCursors. It has a queue of its own because nodes of the previous version do not
// know the job.
const cursorsQueue = "page_boundaries"

// Background returns the periodic work of lists of findings. Only PostgreSQL needs it: in memory, cursors expire by
// themselves.
func Background(st *store.Store) jobs.Work {
	if !st.Postgres() {
		return jobs.Work{}
	}
	return jobs.Work{
		Register: func(workers *river.Workers) { jobs.AddWorker(workers, &expireCursorsWorker{store: st}) },
		Periodic: []*river.PeriodicJob{jobs.Every(list.CursorTTL, expireCursors{})},
		Queues:   []jobs.Queue{{Name: cursorsQueue, Workers: 1, Poll: time.Minute}},
	}
}

// expireCursors is the periodic job that deletes expired cursors.
type expireCursors struct{}

// Kind is the name of the job in the queue.
func (expireCursors) Kind() string { return "old_page_boundaries" }

// InsertOpts prevent a backlog of runs while no worker is up.
func (expireCursors) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = cursorsQueue
	return opts
}

type expireCursorsWorker struct {
	river.WorkerDefaults[expireCursors]
	store *store.Store
}

// Work deletes the expired cursors of all deployments.
func (w *expireCursorsWorker) Work(ctx context.Context, _ *river.Job[expireCursors]) error {
	return list.DeleteExpired(ctx, w.store)
}
