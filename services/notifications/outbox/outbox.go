// Package outbox is how other domains say that something happened of which the receivers of notifications are to be
// told: in the transaction that stores it, so that neither exists without the other.
package outbox

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// Deliver is the job that sends what is due. Cause tells its occasions apart, so that a run that is planned for later
// does not stand for one that is wanted now.
type Deliver struct {
	Cause string `json:"cause"`
}

// The causes.
const (
	CauseEvent  = "event"  // something new happened
	CauseMore   = "more"   // a run ended before the work did
	CausePeriod = "period" // whatever was missed
)

// Kind is the name in the queue.
func (Deliver) Kind() string { return "deliver_notifications" }

// Queue is where the jobs wait: no other work keeps them waiting, and none waits for them.
const Queue = "notifications"

// InsertOpts make one run of many that are asked for. One that waits in the queue of an earlier version does not count.
func (Deliver) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue, opts.UniqueOpts.ByQueue = Queue, true
	return opts
}

// ScanFinished notes that a scan of the context's deployment has ended; its findings are stored already. A deployment
// without an enabled rule pays one query. Call it as the last thing of a transaction: another one that asks for the
// same job waits until this one is committed.
func ScanFinished(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, scanID int64) error {
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
