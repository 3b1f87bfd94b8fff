package outbox

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/payload"
)

// KindReport is the ledger's kind for reports on a schedule.
const KindReport = "report"

// Report writes the delivery of a report to the receiver of a rule of the context's deployment.
func Report(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, ruleID int64, report payload.Report) error {
	now := store.Now()
	err := NewDelivery(tx, report.DeploymentID, ruleID, NewEventID(), KindReport, report.Body(), now).Exec(ctx)
	if err != nil {
		return err
	}
	return queue.Enqueue(ctx, Deliver{Cause: CauseEvent}, nil)
}

// Reporter writes reports. The domain of reports sets Write; rules are tested with it.
type Reporter struct {
	// Write computes the report that a rule would send now. The context may see the whole deployment.
	Write func(ctx context.Context, rule *ent.NotificationRule) (payload.Report, error)
}

// ReporterKey is the key of the Reporter that domains share.
type ReporterKey struct{}
