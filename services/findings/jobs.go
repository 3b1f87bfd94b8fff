package findings

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/findings/list"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// placesQueue has the deletions of old boundaries: nodes of the version before know none of them.
const placesQueue = "page_boundaries"

// Background is what lists of findings need done when nobody calls.
func Background(st *store.Store) jobs.Work {
	if !st.Postgres() { // which alone has any
		return jobs.Work{}
	}
	return jobs.Work{
		Register: func(workers *river.Workers) { jobs.AddWorker(workers, &oldPlacesWorker{store: st}) },
		Periodic: []*river.PeriodicJob{jobs.Every(list.PlacesKept, oldPlaces{})},
		Queues:   []jobs.Queue{{Name: placesQueue, Workers: 1, Poll: time.Minute}},
	}
}

// oldPlaces is the periodic job that deletes the boundaries of pages that were served too long ago.
type oldPlaces struct{}

// Kind is the name in the queue.
func (oldPlaces) Kind() string { return "old_page_boundaries" }

// InsertOpts keep runs from piling up while no node works.
func (oldPlaces) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = placesQueue
	return opts
}

type oldPlacesWorker struct {
	river.WorkerDefaults[oldPlaces]
	store *store.Store
}

// Work deletes them in all deployments.
func (w *oldPlacesWorker) Work(ctx context.Context, _ *river.Job[oldPlaces]) error {
	return list.ForgetPlaces(ctx, w.store)
}
