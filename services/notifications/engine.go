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

// period is the interval of runs without a job: delivery does not depend on jobs that may be lost.
const period = 15 * time.Second

// engine turns events into deliveries and sends them. One run at a time works on a node.
type engine struct {
	store    *store.Store
	senders  *Senders
	log      *slog.Logger
	breakers *breakers
	// base is the URL of this server.
	base string

	// paces is for channels that take few messages. Only the working run uses it.
	paces paces

	// wake signals the working run that another run was requested.
	wake chan struct{}

	// eventsOf is the deployment with the last expanded event. Only the working run uses it.
	eventsOf int64

	mu      sync.Mutex
	running bool
	fresh   bool // no run since the start
}

func newEngine(st *store.Store, senders *Senders, log *slog.Logger) *engine {
	return &engine{store: st, senders: senders, log: log, breakers: newBreakers(), paces: paces{}, wake: make(chan struct{}, 1), fresh: true}
}

// enter reports whether this run is the working one. If another run works, it is signaled.
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

// leave ends the work and reports whether a signal arrived that the run did not see.
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

// Timeout disables the job's timeout: a run works as long as there is something to do. Each attempt and query has its
// own timeout.
func (*deliverWorker) Timeout(*river.Job[outbox.Deliver]) time.Duration { return -1 }

// Work performs one run, and enqueues another if due work is left.
func (w *deliverWorker) Work(ctx context.Context, job *river.Job[outbox.Deliver]) error {
	if job.Args.Cause == outbox.CausePeriod { // another run works
		if err := w.engine.abandonUnreachable(ctx); err != nil {
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

// run works until nothing is due now or soon, or the process stops. more is true if work is left.
func (e *engine) run(ctx context.Context, stopping <-chan struct{}) (more bool, err error) {
	if err := e.freeLeases(ctx); err != nil {
		return false, err
	}
	return newDispatch(e, stopping).run(ctx)
}

// freeLeases releases the leases of a killed process at the first run after a start. On SQLite no other process exists.
// On PostgreSQL a lease may belong to another node, so it is left to expire.
func (e *engine) freeLeases(ctx context.Context) error {
	if !e.fresh || e.store.Postgres() {
		return nil
	}
	err := e.store.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Delivery.Update().Where(isPending, delivery.LockedUntilGT(0)).SetLockedUntil(0).Exec(ctx)
	})
	e.fresh = err != nil
	return err
}
