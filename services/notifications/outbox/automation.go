package outbox

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/automation"
	"github.com/palisade/palisade/ent/notificationrule"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/policies/remediation"
)

// Causes of automations and policies, in the words of the tables. Only policies run once a day.
const (
	CauseScan   = "scan"
	CauseTriage = "triage"
	CauseDay    = "day"
)

// Actor kinds of what automations and remediation policies decide; the id is the automation's or the policy's.
const (
	ActorAutomation = "automation"
	ActorPolicy     = "remediation_policy"
)

// Automate is the job that runs the automations and the remediation policies of one event.
type Automate struct {
	DeploymentID int64  `json:"deployment_id"`
	Cause        string `json:"cause"`
	// ID is the id of the scan or of the triage change.
	ID int64 `json:"id"`
	// At is the time of the event in microseconds since 1970. What a scan changed is not later.
	At int64 `json:"at"`
}

// AutomationQueue is separate, because a job may triage as many findings as a scan reports.
const AutomationQueue = "automations"

// Kind is the name in the queue.
func (Automate) Kind() string { return "run_automations" }

// InsertOpts chooses the queue.
func (Automate) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: AutomationQueue} }

// Triaged records that findings of the context's deployment were triaged. It costs two queries if nothing acts on that.
// What automations and policies decide is not recorded, so that they never trigger each other.
func Triaged(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, deploymentID, changeID int64) error {
	return automate(ctx, tx, queue, notificationsv1.TriggerSource_TRIGGER_SOURCE_ISSUE_TRIAGED,
		Automate{DeploymentID: deploymentID, Cause: CauseTriage, ID: changeID})
}

func automate(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, trigger notificationsv1.TriggerSource, args Automate) error {
	wanted, err := tx.Automation.Query().Where(automation.Active(true), automation.Trigger(trigger.String())).Exist(ctx)
	if err != nil {
		return err
	}
	if !wanted {
		policies, err := remediation.LoadActing(ctx, tx.Client())
		if err != nil || len(policies) == 0 {
			return err
		}
	}
	args.At = store.Now()
	return queue.Enqueue(ctx, args, nil)
}

// The ledger's kinds for messages of automations and of remediation policies.
const (
	KindAutomation = "automation"
	KindPolicy     = "policy"
)

// Automation writes the delivery of a message about findings to the receiver of an enabled rule. sent is false if there
// is no such rule.
func Automation(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, ruleID int64, about payload.Automation) (sent bool, err error) {
	enabled, err := tx.NotificationRule.Query().Where(notificationrule.ID(ruleID), notificationrule.IsEnabled(true)).Exist(ctx)
	if err != nil || !enabled {
		return false, err
	}
	now, kind := store.Now(), KindAutomation
	if about.PolicySlug != "" {
		kind = KindPolicy
	}
	about.SentAt = store.Time(now)
	err = NewDelivery(tx, about.DeploymentID, ruleID, NewEventID(), kind, about.Body(), now).SetProjectID(about.ProjectID).Exec(ctx)
	if err != nil {
		return false, err
	}
	return true, queue.Enqueue(ctx, Deliver{Cause: CauseEvent}, nil)
}

// Starter starts workflows for other domains. The domain of workflows sets Prepare.
type Starter struct {
	// Prepare reads a workflow. It may write, so call it outside of transactions. The error, which callers of the API
	// understand, says why an automation cannot start the workflow.
	Prepare func(ctx context.Context, workflow string) (Start, error)
}

// Start starts a run in the transaction, and returns its id. An error that callers of the API understand says why it
// cannot; then nothing is written.
type Start func(ctx context.Context, tx *ent.Tx, projectID, automationID int64) (int64, error)

// StarterKey is the key of the Starter that domains share.
type StarterKey struct{}
