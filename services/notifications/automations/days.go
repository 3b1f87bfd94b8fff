package automations

import (
	"context"
	"slices"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/remediationpolicy"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/policies/remediation"
)

const (
	// dayTimeout is enough for millions of open findings. A run that is aborted keeps the acts of the policies that have
	// acted, and the others act in the next run.
	dayTimeout = 2 * time.Hour
	day        = 24 * time.Hour
)

// policyDays is the periodic job that enqueues the run of the day for each deployment that has an active policy. It
// runs more often than once a day, because a server may start at any time; a job of a day is unique.
type policyDays struct{}

// Kind is the name in the queue.
func (policyDays) Kind() string { return "policy_days" }

// InsertOpts keeps jobs from piling up while no node works.
func (policyDays) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = outbox.PolicyQueue
	return opts
}

type daysWorker struct {
	river.WorkerDefaults[policyDays]
	store *store.Store
}

// Work enqueues the jobs.
func (w *daysWorker) Work(ctx context.Context, _ *river.Job[policyDays]) error {
	ids, err := w.store.Reader.RemediationPolicy.Query().Where(remediationpolicy.Active(true)).
		Unique(true).Select(remediationpolicy.FieldDeploymentID).Ints(tenant.System(ctx))
	if err != nil {
		return err
	}
	today := time.Now().Unix() / int64(day.Seconds())
	slices.Sort(ids)
	for _, id := range ids {
		err := w.store.Write(tenant.NewContext(ctx, int64(id)), func(ctx context.Context, tx *ent.Tx) error {
			policies, err := remediation.LoadActing(ctx, tx.Client())
			if err != nil || len(policies) == 0 {
				return err
			}
			return jobs.FromContext(ctx).Enqueue(ctx, outbox.PolicyDay{DeploymentID: int64(id), Day: today}, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

type dayWorker struct {
	river.WorkerDefaults[outbox.PolicyDay]
	engine
}

// Timeout limits a run.
func (*dayWorker) Timeout(*river.Job[outbox.PolicyDay]) time.Duration { return dayTimeout }

// Work runs the policies on the open findings of primary branches. Nothing is written before a policy acts, and it acts
// in one transaction, so a run that is aborted can begin again.
func (w *dayWorker) Work(ctx context.Context, job *river.Job[outbox.PolicyDay]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	policies, err := remediation.Load(ctx, w.store.Reader)
	if err != nil {
		return err
	}
	e := &event{Automate: outbox.Automate{DeploymentID: job.Args.DeploymentID, Cause: outbox.CauseDay, ID: job.Args.Day}}
	return w.run(ctx, e, ofPolicies(policies), policies)
}
