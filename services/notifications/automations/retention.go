package automations

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/automationrun"
	"github.com/palisade/palisade/ent/policyrun"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
)

// retention is how long runs stay in the log, retentionBatch how many rows are deleted in one transaction.
const (
	retention      = 90 * 24 * time.Hour
	retentionBatch = 1000
)

// runRetention is the periodic job that shortens the run logs of automations and policies.
type runRetention struct{}

// Kind is the name in the queue.
func (runRetention) Kind() string { return "automation_run_retention" }

// InsertOpts keeps jobs from piling up while no node works. The queue is not the default one, because nodes of the
// version before work at that, and do not know the kind.
func (runRetention) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = outbox.AutomationQueue
	return opts
}

type retentionWorker struct {
	river.WorkerDefaults[runRetention]
	store *store.Store
}

// Work deletes old runs of all automations and policies.
func (w *retentionWorker) Work(ctx context.Context, _ *river.Job[runRetention]) error {
	err := shorten(ctx, w.store, func(ctx context.Context, tx *ent.Tx, before int64) (int, error) {
		ids, err := tx.AutomationRun.Query().Where(automationrun.AtLT(before)).Order(ent.Asc(automationrun.FieldAt)).Limit(retentionBatch).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		return tx.AutomationRun.Delete().Where(store.OneOf(automationrun.FieldID, ids)).Exec(ctx)
	})
	if err != nil {
		return err
	}
	return shorten(ctx, w.store, func(ctx context.Context, tx *ent.Tx, before int64) (int, error) {
		ids, err := tx.PolicyRun.Query().Where(policyrun.AtLT(before)).Order(ent.Asc(policyrun.FieldAt)).Limit(retentionBatch).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		return tx.PolicyRun.Delete().Where(store.OneOf(policyrun.FieldID, ids)).Exec(ctx)
	})
}

// shorten deletes rows that are older than the retention, in batches of all deployments.
func shorten(ctx context.Context, st *store.Store, remove func(ctx context.Context, tx *ent.Tx, before int64) (int, error)) error {
	before := store.Micros(time.Now().Add(-retention))
	for n := retentionBatch; n == retentionBatch; {
		err := st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) (err error) {
			n, err = remove(ctx, tx, before)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
