package outbox

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/payload"
)

// KindRuleAlert is the ledger's kind for messages about rules.
const KindRuleAlert = "rule_alert"

// RuleAlert writes the deliveries of a message about rules of the context's deployment. cause identifies what happened:
// the same cause again writes none.
func RuleAlert(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, cause string, about payload.RuleAlert) error {
	rules, err := tx.NotificationRule.Query().Where(notificationrule.IsEnabled(true), notificationrule.SendRuleAlerts(true)).
		Order(ent.Asc(notificationrule.FieldID)).IDs(ctx)
	if err != nil || len(rules) == 0 {
		return err
	}
	event := eventID("rule alert/%d/%s", about.DeploymentID, cause)
	written, err := tx.Delivery.Query().Where(delivery.DeploymentID(about.DeploymentID), delivery.EventID(event)).Exist(ctx)
	if err != nil || written {
		return err
	}
	now := store.Now()
	about.SentAt = store.Time(now)
	body := about.Body()
	rows := make([]*ent.DeliveryCreate, len(rules))
	for i, rule := range rules {
		rows[i] = NewDelivery(tx, about.DeploymentID, rule, event, KindRuleAlert, body, now).SetProjectID(about.ProjectID).SetScanID(about.ScanID)
	}
	if err := insert(ctx, tx, rows); err != nil {
		return err
	}
	return queue.Enqueue(ctx, Deliver{Cause: CauseEvent}, nil)
}
