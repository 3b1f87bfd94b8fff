package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflowrun"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/workflows/step"
)

// Longer texts are cut: a model's output is unbounded, and must not block the notification.
const (
	maxTitle   = 200    // characters
	maxMessage = 20_000 // characters
	maxRules   = 100
)

// notifyParameters are the parameters of notify.
type notifyParameters struct {
	Title   string `json:"title"`
	Message string `json:"message"`
	// RuleIDs are the notification rules to use; if empty, all enabled rules.
	RuleIDs []id `json:"ruleIds"`
}

func (p notifyParameters) problem(open map[string]bool) string {
	switch {
	case strings.TrimSpace(p.Title) == "" && !open["title"]:
		return "title is missing: the line that tells what the message is about"
	case len(p.RuleIDs) > maxRules:
		return fmt.Sprintf("ruleIds must be at most %d, got %d", maxRules, len(p.RuleIDs))
	}
	return ""
}

// notify sends a message to the receivers of notification rules. It only writes deliveries to the ledger. The run does
// not depend on their outcome.
func notify(st *store.Store) step.Kind {
	return step.Kind{
		Name: "notify", Doc: "Sends a message through the enabled notification rules of the deployment, or through some of them.",
		Check: checked[notifyParameters](),
		Run: func(ctx context.Context, call step.Call) (step.Result, error) {
			p, err := decodeParameters[notifyParameters](call)
			if err != nil {
				return step.Result{}, err
			}
			queue := jobs.FromContext(ctx)
			if queue == nil {
				return step.Result{}, errors.New("notify runs in a job only")
			}
			deliveries := 0
			err = st.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
				deliveries, err = p.send(tenant.NewContext(ctx, call.DeploymentID), tx, queue, call)
				return err
			})
			if err != nil {
				return step.Result{}, storeError("the message could not be stored", err)
			}
			return output(map[string]int{"deliveries": deliveries})
		},
	}
}

func (p notifyParameters) send(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, call step.Call) (int, error) {
	run, err := tx.WorkflowRun.Query().Where(workflowrun.DeploymentID(call.DeploymentID), workflowrun.ID(call.RunID)).
		Select(workflowrun.FieldSubmittedAt).Only(ctx)
	if err != nil {
		return 0, err
	}
	message := outbox.Workflow{
		WorkflowMessage: payload.WorkflowMessage{
			DeploymentID: call.DeploymentID, Workflow: call.Workflow, RunID: call.RunID,
			Title: cut(strings.Join(strings.Fields(p.Title), " "), maxTitle), Text: cut(p.Message, maxMessage),
		},
		Step: call.Step, Path: call.Path, SubmittedAt: run.SubmittedAt,
	}
	if call.ProjectID != nil {
		message.ProjectID = *call.ProjectID
	}
	for _, rule := range p.RuleIDs {
		message.RuleIDs = append(message.RuleIDs, int64(rule))
	}
	deliveries, err := outbox.WorkflowMessage(ctx, tx, queue, message)
	var unknown outbox.UnknownRuleError
	if errors.As(err, &unknown) {
		return 0, step.Permanent("%w", unknown)
	}
	return deliveries, err
}

// cut shortens a text to a number of characters.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}
