package findings

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// changesQueue is the queue of expireChanges. It has a queue of its own because nodes of the previous version do not
// know the job.
const changesQueue = "triage_changes"

// ChangesBackground returns the periodic work of triage changes: it deletes the ones that are older than the retention.
func ChangesBackground(st *store.Store, retention time.Duration) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &expireChangesWorker{store: st, retention: retention})
		},
		Periodic: []*river.PeriodicJob{jobs.Every(time.Hour, expireChanges{})},
		Queues:   []jobs.Queue{{Name: changesQueue, Workers: 1, Poll: time.Minute}},
	}
}

// expireChanges is the periodic job that deletes old triage changes.
type expireChanges struct{}

// Kind is the name of the job in the queue.
func (expireChanges) Kind() string { return "old_triage_changes" }

// InsertOpts prevent a backlog of runs while no worker is up.
func (expireChanges) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = changesQueue
	return opts
}

type expireChangesWorker struct {
	river.WorkerDefaults[expireChanges]
	store     *store.Store
	retention time.Duration
}

// Work deletes the old changes of all deployments.
func (w *expireChangesWorker) Work(ctx context.Context, _ *river.Job[expireChanges]) error {
	return triage.Expire(ctx, w.store, w.retention)
}
