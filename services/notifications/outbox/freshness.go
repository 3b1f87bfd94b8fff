package outbox

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/payload"
)

// KindFreshness is the ledger's kind for messages about freshness.
const KindFreshness = "freshness"

// Freshness writes the deliveries of messages about changed states of freshness in the context's deployment. The
// transaction holds the locks of the rows, so that no other one tells the same change.
func Freshness(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, changes []payload.Freshness) error {
	if len(changes) == 0 {
		return nil
	}
	rules, err := tx.NotificationRule.Query().Where(notificationrule.IsEnabled(true), notificationrule.SendFreshness(true)).
		Order(ent.Asc(notificationrule.FieldID)).IDs(ctx)
	if err != nil || len(rules) == 0 {
		return err
	}
	owner, err := tx.Deployment.Query().Where(deployment.ID(changes[0].DeploymentID)).Only(ctx)
	if err != nil {
		return err
	}
	now := store.Now()
	var rows []*ent.DeliveryCreate
	for _, c := range changes {
		c.SentAt, c.TenantName = store.Time(now), owner.Slug
		event, body := freshnessEvent(c, now), c.Body()
		for _, rule := range rules {
			rows = append(rows, NewDelivery(tx, c.DeploymentID, rule, event, KindFreshness, body, now).SetProjectID(c.ProjectID).SetScanID(c.ScanID))
		}
	}
	if err := insert(ctx, tx, rows); err != nil {
		return err
	}
	return queue.Enqueue(ctx, Deliver{Cause: CauseEvent}, nil)
}

// freshnessEvent is the id of the message, which is unique across all servers that a receiver may get messages from.
func freshnessEvent(c payload.Freshness, now int64) string {
	return eventID("freshness/%d/%d/%q/%q/%q/%s/%d", c.DeploymentID, c.ProjectID, c.Ref, c.Tool, c.Category, c.State, now)
}
