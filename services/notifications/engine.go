package notifications

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
)

// period is how often a run is made in any case: nothing depends on a job that may have been lost.
const period = 15 * time.Second

// engine turns events into deliveries and sends them. One run of it works at a time on a node.
type engine struct {
	store    *store.Store
	senders  *Senders
	log      *slog.Logger
	breakers *breakers

	// wake is filled when a run is asked for while one works.
	wake chan struct{}

	// eventsOf is the deployment whose event was turned into deliveries last. Only the run that works uses it.
	eventsOf int64

	mu      sync.Mutex
	running bool
	fresh   bool // no run was made since the start
}

func newEngine(st *store.Store, senders *Senders, log *slog.Logger) *engine {
	return &engine{store: st, senders: senders, log: log, breakers: newBreakers(), wake: make(chan struct{}, 1), fresh: true}
}

// enter reports whether this run is the one that works; if another does, that one is told that there is more to do.
func (e *engine) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.running {
		e.running = true
		return true
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
	return false
}

// leave ends the work and reports whether more was asked for that the run did not see.
func (e *engine) leave() (again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = false
	select {
	case <-e.wake:
		return true
	default:
		return false
	}
}

type deliverWorker struct {
	river.WorkerDefaults[outbox.Deliver]
	engine *engine
}

// Timeout lets a run work as long as there is something to do. Each attempt and each query in it has a bound of its
// own.
func (*deliverWorker) Timeout(*river.Job[outbox.Deliver]) time.Duration { return -1 }

// Work makes one run, and asks for another when it leaves something that is due.
func (w *deliverWorker) Work(ctx context.Context, job *river.Job[outbox.Deliver]) error {
	if job.Args.Cause == outbox.CausePeriod { // beside the run that works
		if err := w.engine.giveUpUnreachable(ctx); err != nil {
			return err
		}
	}
	if !w.engine.enter() {
		return nil
	}
	queue := jobs.FromContext(ctx)
	more, err := w.engine.run(ctx, queue.Stopping())
	if again := w.engine.leave(); !again && !more || ctx.Err() != nil {
		return err
	}
	enqueue := w.engine.store.Write(tenant.System(ctx), func(ctx context.Context, _ *ent.Tx) error {
		return queue.Enqueue(ctx, outbox.Deliver{Cause: outbox.CauseMore}, nil)
	})
	if err == nil {
		err = enqueue
	}
	return err
}

// run works until nothing is due, or will be soon, or the process stops. more is true when something is left.
func (e *engine) run(ctx context.Context, stopping <-chan struct{}) (more bool, err error) {
	if err := e.takeOver(ctx); err != nil {
		return false, err
	}
	return newDispatch(e, stopping).run(ctx)
}

// takeOver frees, at the first run after a start, what a process that was killed had taken. On SQLite there was no
// other process than that one; on PostgreSQL it may belong to another node, and is free when its time is up.
func (e *engine) takeOver(ctx context.Context) error {
	if !e.fresh || e.store.Postgres() {
		return nil
	}
	err := e.store.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Delivery.Update().Where(isPending, delivery.LockedUntilGT(0)).SetLockedUntil(0).Exec(ctx)
	})
	e.fresh = err != nil
	return err
}
