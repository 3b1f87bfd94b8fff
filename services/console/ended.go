package console

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// endedInterval is how often ended sessions and expired links are deleted.
const endedInterval = time.Hour

// sessionQueue keeps nodes of the previous version, which do not know the job, from claiming it.
const sessionQueue = "sessions"

// ended deletes sessions and console links that nobody can use any more.
func ended(st *store.Store, sessions *access.Sessions) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &endedWorker{store: st, sessions: sessions})
		},
		Periodic: []*river.PeriodicJob{jobs.Every(endedInterval, endedSessions{})},
		Queues:   []jobs.Queue{{Name: sessionQueue, Workers: 1, Poll: time.Minute}},
	}
}

// endedSessions is the periodic job.
type endedSessions struct{}

// Kind is the name in the queue.
func (endedSessions) Kind() string { return "ended_sessions" }

// InsertOpts keeps jobs from piling up while no node works.
func (endedSessions) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = sessionQueue
	return opts
}

type endedWorker struct {
	river.WorkerDefaults[endedSessions]
	store    *store.Store
	sessions *access.Sessions
}

// Work deletes the rows.
func (w *endedWorker) Work(ctx context.Context, _ *river.Job[endedSessions]) error {
	if _, err := w.sessions.DeleteEnded(ctx); err != nil {
		return err
	}
	_, err := access.DeleteExpiredConsoleLinks(ctx, w.store)
	return err
}
