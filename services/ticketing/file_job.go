package ticketing

import (
	"context"
	"errors"
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
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/ticketing/filing"
)

const (
	// tokenWait is how long a job waits for another token, and tokenMaxWait for how long it does so.
	tokenWait, tokenMaxWait = 15 * time.Minute, 24 * time.Hour
)

var errNoToken = errors.New("the tracker refuses the credential of the ticketing instance")

// fileWorker creates the tickets that policies and automations ask for. It may run again at any point: findings with a
// ticket are skipped.
type fileWorker struct {
	river.WorkerDefaults[filing.File]
	*desk
	log *slog.Logger
}

// Timeout implements river.Worker.
func (*fileWorker) Timeout(*river.Job[filing.File]) time.Duration { return syncTimeout }

// waitForToken tries again later, for a day: an administrator has to store another token.
func waitForToken(begun time.Time) error {
	if time.Since(begun) > tokenMaxWait {
		return river.JobCancel(errNoToken)
	}
	return river.JobSnooze(tokenWait)
}

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
	if instance.Refused {
		return waitForToken(job.CreatedAt)
	}
	part := job.Args.FindingIDs[:min(len(job.Args.FindingIDs), maxChosen)]
	out, err := w.create(ctx, instance, order{project: job.Args.Project, group: true}, part, false, finding.Status(lifecycle.Open))
	if err != nil {
		return err
	}
	for _, f := range out.failed {
		w.log.InfoContext(ctx, "tickets were not created", "instance_id", instance.ID, "findings", len(f.findings), "reason", f.reason)
	}
	switch {
	case host.Is(out.again, host.Unauthorized):
		return waitForToken(job.CreatedAt)
	case out.again != nil:
		return connect.Retry(out.again, job.CreatedAt)
	case out.pending:
		return river.JobSnooze(2 * indexDelay)
	}
	rest := slices.Concat(job.Args.FindingIDs[len(part):], out.left)
	if len(rest) == 0 {
		return nil
	}
	next := job.Args
	next.FindingIDs = rest
	return w.store.Write(ctx, func(ctx context.Context, _ *ent.Tx) error { return jobs.FromContext(ctx).Enqueue(ctx, next, nil) })
}
