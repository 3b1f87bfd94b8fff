// Package outbox records events of other domains for the receivers of notifications. It writes in the transaction that
// stores the subject, so that neither exists without the other.
package outbox

import (
	"context"
	"slices"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/notificationrule"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// Deliver is the job that sends due deliveries. Cause distinguishes jobs, so that a job scheduled for later does not
// suppress one that is needed now.
type Deliver struct {
	Cause string `json:"cause"`
}

// Causes.
const (
	CauseEvent  = "event"  // there is a new event
	CauseMore   = "more"   // a run ended before the work did
	CausePeriod = "period" // the periodic job
)

// Kind is the name in the queue.
func (Deliver) Kind() string { return "deliver_notifications" }

// Queue is separate, so that deliveries and other jobs do not delay each other.
const Queue = "notifications"

// InsertOpts deduplicates jobs. A job in the queue of an earlier version does not count.
func (Deliver) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue, opts.UniqueOpts.ByQueue = Queue, true
	return opts
}

// ScanFinished records that a scan of the context's deployment has ended; its findings are already stored. A deployment
// without an enabled rule, an automation and a policy costs three queries. Call it last in the transaction: other
// transactions that enqueue the same job wait until this one commits.
func ScanFinished(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, deploymentID, scanID int64) error {
	err := automate(ctx, tx, queue, notificationsv1.TriggerSource_TRIGGER_SOURCE_SCAN, Automate{DeploymentID: deploymentID, Cause: CauseScan, ID: scanID})
	if err != nil {
		return err
	}
	wanted, err := tx.NotificationRule.Query().Where(notificationrule.IsEnabled(true)).Exist(ctx)
	if err != nil || !wanted {
		return err
	}
	now := store.Now()
	if err := tx.NotificationEvent.Create().SetScanID(scanID).SetNotBefore(now).SetCreatedAt(now).Exec(ctx); err != nil {
		return err
	}
	return queue.Enqueue(ctx, Deliver{Cause: CauseEvent}, nil)
}

// deliveriesPerInsert keeps a statement below SQLite's parameter limit.
const deliveriesPerInsert = 200

func insert(ctx context.Context, tx *ent.Tx, rows []*ent.DeliveryCreate) error {
	for part := range slices.Chunk(rows, deliveriesPerInsert) {
		if err := tx.Delivery.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}
