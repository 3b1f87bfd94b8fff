package notifications

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/deliveryattempt"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"

	entsql "entgo.io/ent/dialect/sql"
)

const (
	// queuePoll is the maximum time until a new job is seen.
	queuePoll = 500 * time.Millisecond
	// retention is how long finished deliveries stay in the ledger.
	retention = 30 * 24 * time.Hour
	// retentionInterval is how often old rows are deleted, retentionBatch how many in one transaction.
	retentionInterval = time.Hour
	retentionBatch    = 1000
)

// Background returns the background work of notifications. Links in messages lead to the console below the base URL.
func Background(senders *Senders, base string, log *slog.Logger) jobs.Work {
	e := newEngine(senders.store, senders, log)
	e.base = base
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &deliverWorker{engine: e})
			jobs.AddWorker(workers, &retentionWorker{store: senders.store})
			jobs.AddWorker(workers, &digestWorker{digests: NewDigests(senders.store, base)})
		},
		Periodic: []*river.PeriodicJob{
			jobs.Every(period, outbox.Deliver{Cause: outbox.CausePeriod}),
			jobs.Every(retentionInterval, deliveryRetention{}),
			jobs.Every(digestInterval, digestArgs{}),
		},
		// One job works as long as there is something to do. Others signal it and return.
		Queues: []jobs.Queue{{Name: outbox.Queue, Workers: 2, Poll: queuePoll}, {Name: digestQueue, Workers: 1}},
	}
}

// deliveryRetention is the periodic job that deletes old deliveries.
type deliveryRetention struct{}

// Kind is the name in the queue.
func (deliveryRetention) Kind() string { return "delivery_retention" }

// InsertOpts keeps jobs from piling up while no node works.
func (deliveryRetention) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type retentionWorker struct {
	river.WorkerDefaults[deliveryRetention]
	store *store.Store
}

// Work deletes old deliveries of all deployments. It also looks for API tokens that expire soon, which needs no job of
// its own.
func (w *retentionWorker) Work(ctx context.Context, _ *river.Job[deliveryRetention]) error {
	now := time.Now()
	return errors.Join(deleteDeliveries(ctx, w.store, now.Add(-retention)), TellExpiring(ctx, w.store, now))
}

// deleteDeliveries deletes deliveries that ended before a time, with their attempts, in small transactions.
func deleteDeliveries(ctx context.Context, st *store.Store, endedBefore time.Time) error {
	for n := retentionBatch; n == retentionBatch; {
		err := st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
			ids, err := tx.Delivery.Query().Where(delivery.FinishedAtNotNil(), delivery.FinishedAtLT(store.Micros(endedBefore))).
				Order(ent.Asc(delivery.FieldFinishedAt, delivery.FieldID)).Limit(retentionBatch).IDs(ctx)
			if n = len(ids); err != nil || n == 0 {
				return err
			}
			_, err = tx.DeliveryAttempt.Delete().Where(ofDeliveries(ids)).Exec(ctx)
			if err != nil {
				return err
			}
			_, err = tx.Delivery.Delete().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(delivery.FieldID), ids)) }).Exec(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ofDeliveries selects the attempts of deliveries. The deployments come first, as in the index.
func ofDeliveries(ids []int64) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		of := entsql.Dialect(s.Dialect()).Table(delivery.Table)
		owners := entsql.Dialect(s.Dialect()).Select(of.C(delivery.FieldDeploymentID)).From(of).Where(store.InIDs(of.C(delivery.FieldID), ids))
		s.Where(entsql.In(s.C(deliveryattempt.FieldDeploymentID), owners))
		s.Where(store.InIDs(s.C(deliveryattempt.FieldDeliveryID), ids))
	}
}
