package outbox

import (
	"context"
	"fmt"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/payload"
)

// KindWorkflow is the ledger's kind for messages of workflow steps.
const KindWorkflow = "workflow"

// Workflow is a message from a step of a run.
type Workflow struct {
	payload.WorkflowMessage
	// Step and Path identify the task. A task sends one message, even if it is retried.
	Step, Path string
	// SubmittedAt is the submission time of the run in microseconds. With the ids it forms the message id, which is unique
	// across all servers that a receiver may get messages from.
	SubmittedAt int64
	// RuleIDs are the rules to use; all enabled rules if empty.
	RuleIDs []int64
}

// UnknownRuleError names a rule that does not exist in the message's deployment.
type UnknownRuleError struct{ ID int64 }

// Error implements error.
func (e UnknownRuleError) Error() string { return fmt.Sprintf("notification rule %d not found", e.ID) }

// WorkflowMessage writes a message's deliveries in the context's deployment and returns their number. A repeated call
// for the same task of a run writes none. Disabled rules are left out. A rule's policy filter applies to findings only
// and is ignored here.
func WorkflowMessage(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, w Workflow) (deliveries int, err error) {
	rules, err := rulesOf(ctx, tx, w)
	if err != nil {
		return 0, err
	}
	event := w.eventID()
	written, err := tx.Delivery.Query().Where(delivery.DeploymentID(w.DeploymentID), delivery.EventID(event), delivery.ReplayOfIsNil()).Count(ctx)
	if err != nil || written > 0 || len(rules) == 0 {
		return written, err
	}
	now := store.Now()
	w.SentAt = store.Time(now)
	body := payload.Workflow(w.WorkflowMessage)
	rows := make([]*ent.DeliveryCreate, len(rules))
	for i, rule := range rules {
		rows[i] = NewDelivery(tx, w.DeploymentID, rule, event, KindWorkflow, body, now).SetProjectID(w.ProjectID)
	}
	if err := insert(ctx, tx, rows); err != nil {
		return 0, err
	}
	return len(rows), queue.Enqueue(ctx, Deliver{Cause: CauseEvent}, nil)
}

// rulesOf reads the rules to use. It locks them to serialize attempts of the same step.
func rulesOf(ctx context.Context, tx *ent.Tx, w Workflow) (ids []int64, err error) {
	found, err := tx.NotificationRule.Query().Where(notificationrule.DeploymentID(w.DeploymentID), func(s *entsql.Selector) {
		if s.Dialect() == dialect.Postgres {
			s.ForUpdate()
		}
	}).Select(notificationrule.FieldID, notificationrule.FieldIsEnabled).Order(ent.Asc(notificationrule.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	enabled := map[int64]bool{}
	for _, rule := range found {
		enabled[rule.ID] = rule.IsEnabled
		if rule.IsEnabled && (len(w.RuleIDs) == 0 || slices.Contains(w.RuleIDs, rule.ID)) {
			ids = append(ids, rule.ID)
		}
	}
	for _, id := range w.RuleIDs {
		if _, known := enabled[id]; !known {
			return nil, UnknownRuleError{id}
		}
	}
	return ids, nil
}

func (w Workflow) eventID() string {
	return eventID("workflow/%d/%d/%d/%q/%q", w.DeploymentID, w.RunID, w.SubmittedAt, w.Step, w.Path)
}
