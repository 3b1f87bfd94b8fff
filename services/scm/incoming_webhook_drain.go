package scm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/riverqueue/river"
	"golang.org/x/sync/errgroup"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/webhookevent"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
)

const (
	// eventsQueue is the queue of the jobs that process events.
	eventsQueue   = "scm_events"
	eventsWorkers = 8
	eventsPoll    = 500 * time.Millisecond
	// eventsTurn is how long a deployment's turn lasts if others may wait.
	eventsTurn = time.Second
	// eventsAtOnce is how many events of one deployment are processed concurrently, each of another pull request.
	// eventsPerClaim is how many are leased at once.
	eventsAtOnce   = 4
	eventsPerClaim = 32
	// eventTimeout applies to processing one event. eventLease is the lease: long enough for all events leased at once,
	// because none starts after the turn, and short enough to recover the events of a killed node.
	eventTimeout = time.Minute
	eventLease   = 75 * time.Second
	// eventsSweep is the interval of looking for events without a job and for retries.
	eventsSweep = 10 * time.Second
)

// errTaken: another worker took the event, because processing took longer than the lease.
var errTaken = errors.New("this node no longer holds the lease of the event")

// drainArgs is the job that processes a deployment's waiting events.
type drainArgs struct {
	DeploymentID int64 `json:"deployment_id"`
}

// Kind is the name in the queue.
func (drainArgs) Kind() string { return "scm_events" }

// InsertOpts keeps at most one waiting job per deployment.
func (drainArgs) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue, opts.MaxAttempts = eventsQueue, 3 // the next sweep starts again
	return opts
}

type drainWorker struct {
	river.WorkerDefaults[drainArgs]
	*eventActions

	mu      sync.Mutex
	running map[int64]bool // by deployment: whether to check again before the end
}

// Work processes events until none is due or the deployment's turn is over. One job per deployment works on a node.
// Other jobs signal it and return.
func (w *drainWorker) Work(ctx context.Context, job *river.Job[drainArgs]) error {
	id := job.Args.DeploymentID
	if !w.enter(id) {
		return nil
	}
	ctx = tenant.NewContext(ctx, id)
	over := time.Now().Add(eventsTurn)
	for {
		more, err := w.batch(ctx, over)
		switch {
		case err != nil:
			w.leave(id, true)
			return err
		case more && time.Now().After(over):
			w.leave(id, true)
			return w.store.Write(ctx, func(ctx context.Context, _ *ent.Tx) error {
				return jobs.FromContext(ctx).Enqueue(ctx, drainArgs{DeploymentID: id}, nil)
			})
		case !more && w.leave(id, false):
			return nil
		}
	}
}

// enter reports whether no other job of the deployment works on this node. A working job is signaled to check again.
func (w *drainWorker) enter(id int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.running[id]; ok {
		w.running[id] = true
		return false
	}
	w.running[id] = false
	return true
}

// leave ends the work of a job. It returns false if the job was signaled to check again, unless must is set.
func (w *drainWorker) leave(id int64, must bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[id] && !must {
		w.running[id] = false
		return false
	}
	delete(w.running, id)
	return true
}

// batch leases and processes some events, and reports whether there were any. Events not started at the end of the turn
// are released.
func (w *drainWorker) batch(ctx context.Context, over time.Time) (more bool, err error) {
	rows, lease, err := w.claim(ctx)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	var group errgroup.Group
	group.SetLimit(eventsAtOnce)
	var back []int64
	for i, row := range rows {
		if i > 0 && time.Now().After(over) {
			back = append(back, row.ID)
			continue
		}
		group.Go(func() error { return w.subject(ctx, row, lease, over) })
	}
	err = group.Wait()
	if len(back) > 0 {
		err = errors.Join(err, w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			return tx.WebhookEvent.Update().Where(store.WithIDs[predicate.WebhookEvent](back), webhookevent.DueAt(lease)).SetDueAt(store.Now()).Exec(ctx)
		}))
	}
	return true, err
}

// subject processes an event and the later ones of its subject, until the turn is over.
func (w *drainWorker) subject(ctx context.Context, row *ent.WebhookEvent, lease int64, over time.Time) (err error) {
	for row != nil && err == nil {
		subject := row.Subject
		if err = w.event(ctx, row, lease); err != nil || ctx.Err() != nil || time.Now().After(over) {
			return err
		}
		row, lease, err = w.next(ctx, subject)
	}
	return err
}

// next leases the oldest waiting event of a subject; nil if there is none or it is not due.
func (w *drainWorker) next(ctx context.Context, subject string) (row *ent.WebhookEvent, lease int64, err error) {
	err = w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now := time.Now()
		lease = store.Micros(now.Add(eventLease))
		query := tx.WebhookEvent.Query().Where(webhookevent.Subject(subject), webhookevent.DueAtNotNil()).
			Order(ent.Asc(webhookevent.FieldHappenedAt, webhookevent.FieldID))
		if w.store.Postgres() {
			query.ForUpdate()
		}
		first, err := query.First(ctx)
		if err != nil || *first.DueAt > store.Micros(now) {
			return ignoreMissing(err)
		}
		row = first
		return tx.WebhookEvent.UpdateOneID(first.ID).SetDueAt(lease).Exec(ctx)
	})
	return row, lease, err
}

// claim leases due events, the first of each subject.
func (w *drainWorker) claim(ctx context.Context) (rows []*ent.WebhookEvent, lease int64, err error) {
	err = w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now := time.Now()
		lease = store.Micros(now.Add(eventLease))
		query := tx.WebhookEvent.Query().Where(webhookevent.DueAtLTE(store.Micros(now)), firstOfSubject(store.Micros(now))).
			Order(ent.Asc(webhookevent.FieldDueAt, webhookevent.FieldID)).Limit(eventsPerClaim)
		if w.store.Postgres() {
			query.ForUpdate(entsql.WithLockAction(entsql.SkipLocked))
		}
		if rows, err = query.All(ctx); err != nil || len(rows) == 0 {
			return err
		}
		ids := make([]int64, len(rows))
		for i, row := range rows {
			ids[i] = row.ID
		}
		return tx.WebhookEvent.Update().Where(store.WithIDs[predicate.WebhookEvent](ids)).SetDueAt(lease).Exec(ctx)
	})
	return rows, lease, err
}

// firstOfSubject selects the oldest waiting event of each subject, if no event of the subject is being processed or
// waits for a retry.
func firstOfSubject(now int64) predicate.WebhookEvent {
	return func(s *entsql.Selector) {
		other := entsql.Table(webhookevent.Table).As("other")
		before := entsql.Dialect(s.Dialect()).Select(other.C(webhookevent.FieldID)).From(other)
		before.Where(entsql.And(
			entsql.ColumnsEQ(other.C(webhookevent.FieldDeploymentID), s.C(webhookevent.FieldDeploymentID)),
			entsql.ColumnsEQ(other.C(webhookevent.FieldSubject), s.C(webhookevent.FieldSubject)),
			entsql.NotNull(other.C(webhookevent.FieldDueAt)),
			entsql.Or(
				entsql.GT(other.C(webhookevent.FieldDueAt), now),
				entsql.P(func(b *entsql.Builder) {
					b.WriteString("(" + other.C(webhookevent.FieldHappenedAt) + ", " + other.C(webhookevent.FieldID) + ") < (" +
						s.C(webhookevent.FieldHappenedAt) + ", " + s.C(webhookevent.FieldID) + ")")
				}),
			),
		))
		s.Where(entsql.Not(entsql.Exists(before)))
	}
}

// event processes one event and marks it done in the transaction of its effects, so that both happen exactly once.
func (w *drainWorker) event(ctx context.Context, row *ent.WebhookEvent, lease int64) error {
	taken := func(tx *ent.Tx) *ent.WebhookEventUpdate {
		return tx.WebhookEvent.Update().Where(webhookevent.ID(row.ID), webhookevent.DueAt(lease))
	}
	err := w.tryEvent(ctx, row, func(ctx context.Context, tx *ent.Tx) error {
		n, err := taken(tx).ClearDueAt().ClearEvent().Save(ctx)
		if err == nil && n == 0 {
			err = errTaken
		}
		return err
	})
	if err == nil || errors.Is(err, errTaken) || ctx.Err() != nil { // for a node that stops, the lease expires by itself
		return nil
	}
	wait, counts, again := tryAgain(err, row)
	if !again {
		w.log.WarnContext(ctx, "an event of a source-code host was abandoned", "subject", row.Subject, "attempts", row.Attempts+1, "error", err)
	}
	return w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		update := taken(tx)
		if !again {
			return update.ClearDueAt().ClearEvent().SetFailed(true).Exec(ctx)
		}
		if counts {
			update.AddAttempts(1)
		}
		return update.SetDueAt(store.Micros(time.Now().Add(wait))).Exec(ctx)
	})
}

// tryEvent processes one event. It converts a panic to an error: the queue does not recover panics in this goroutine.
func (w *drainWorker) tryEvent(ctx context.Context, row *ent.WebhookEvent, over step) (err error) {
	defer func() {
		if value := recover(); value != nil {
			w.log.ErrorContext(ctx, "panic while acting on an event", slog.Any("panic", value))
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	var args eventArgs
	if err := json.Unmarshal(row.Event, &args); err != nil {
		return fmt.Errorf("stored event: %w", err)
	}
	return w.act(ctx, args, over)
}

// tryAgain decides whether and when to retry after an error. counts reports whether the try counts against the limit.
func tryAgain(err error, row *ent.WebhookEvent) (wait time.Duration, counts, again bool) {
	if wait, limited := connect.LimitWait(err, store.Time(row.ReceivedAt)); limited {
		return wait, false, true
	}
	tries := time.Duration(row.Attempts + 1)
	return min(tries*tries*tries*tries*time.Second, time.Hour), true, connect.Temporary(err) && row.Attempts+1 < webhookAttempts
}

// sweepArgs is the job that looks for due events.
type sweepArgs struct{}

// Kind is the name in the queue.
func (sweepArgs) Kind() string { return "scm_events_sweep" }

// InsertOpts keeps jobs from piling up while no node works.
func (sweepArgs) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = eventsQueue
	return opts
}

type sweepWorker struct {
	river.WorkerDefaults[sweepArgs]
	store *store.Store
}

// Work enqueues the jobs of all deployments with due events. A job that already waits is not added again.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[sweepArgs]) error {
	var ids []int64
	err := w.store.Reader.WebhookEvent.Query().Where(webhookevent.DueAtLTE(store.Now())).Unique(true).
		Select(webhookevent.FieldDeploymentID).Scan(tenant.System(ctx), &ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		err := w.store.Write(ctx, func(ctx context.Context, _ *ent.Tx) error {
			return jobs.FromContext(ctx).Enqueue(ctx, drainArgs{DeploymentID: id}, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
