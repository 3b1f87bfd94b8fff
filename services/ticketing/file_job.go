package ticketing

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/ticketinginstance"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/ticketing/filing"
)

// fileWorker creates the tickets that policies and automations ask for. It may run again at any point: findings with a
// ticket are skipped.
type fileWorker struct {
	river.WorkerDefaults[filing.File]
	*desk
	log *slog.Logger
}

// Timeout implements river.Worker.
func (*fileWorker) Timeout(*river.Job[filing.File]) time.Duration { return syncTimeout }

// Work creates 20 tickets, and enqueues another job for the findings that are left.
func (w *fileWorker) Work(ctx context.Context, job *river.Job[filing.File]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	instance, err := w.store.Reader.TicketingInstance.Query().Where(ticketinginstance.ID(job.Args.InstanceID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	part := job.Args.FindingIDs[:min(len(job.Args.FindingIDs), maxChosen)]
	out, err := w.create(ctx, instance, order{project: job.Args.Project, group: true}, part, false, finding.Status(lifecycle.Open))
	if err != nil {
		return err
	}
	for _, f := range out.failed {
		w.log.InfoContext(ctx, "tickets were not created", "instance_id", instance.ID, "findings", len(f.findings), "reason", f.reason)
	}
	if out.again != nil {
		return connect.Retry(out.again, job.CreatedAt)
	}
	rest := slices.Clone(job.Args.FindingIDs[len(part):])
	if out.over {
		rest = append(rest, out.left...)
	}
	if len(rest) == 0 {
		return nil
	}
	next := job.Args
	next.FindingIDs = rest
	return w.store.Write(ctx, func(ctx context.Context, _ *ent.Tx) error { return jobs.FromContext(ctx).Enqueue(ctx, next, nil) })
}
