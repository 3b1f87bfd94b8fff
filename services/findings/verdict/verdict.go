// Package verdict stores what automation says about a finding: the verdict with its reason, the guidance, a fix and the
// component. AI tasks and workflow steps use it, so that both follow the same rules.
//
// Automation never overrides people. It may provisionally ignore an open rule-based code finding that no person
// has decided about, and undo that. It changes nothing else about triage (contract facts, section 4).
package verdict

import (
	"context"
	"errors"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// Verdicts, as the contract spells them.
const (
	TruePositive  = "true_positive"
	FalsePositive = "false_positive"
)

// EventKind is the kind of the finding event of a verdict.
const EventKind = "autotriaged"

// Actors of verdicts, as in finding events.
const (
	ActorJob      = "job"
	ActorWorkflow = "workflow"
)

// ErrUnknownVerdict rejects an unknown verdict.
var ErrUnknownVerdict = errors.New("verdict must be true_positive, false_positive or empty")

// Verdict is what automation says about one finding. Empty texts leave the stored ones unchanged.
type Verdict struct {
	FindingID int64
	// Value is TruePositive, FalsePositive, or empty for none.
	Value, Reason string
	// Guidance describes the fix: in one sentence, and step by step.
	GuidanceSummary, GuidanceText string
	// FixCode replaces the matched lines; FixDiff is the same as a unified diff.
	FixCode, FixDiff, FixExplanation string
	// RuleSummary and RuleExplanation explain the rule, in one sentence and in full.
	RuleSummary, RuleExplanation string
	// ComponentTag is the part of the product. ComponentRisk is high, low or neutral.
	ComponentTag, ComponentRisk string
	// ActorKind and ActorID have the form of finding events: ActorJob with the job's id, or ActorWorkflow with the
	// run's.
	ActorKind string
	ActorID   int64
	// ContentHash is the hash of the finding when automation read it; 0 means unknown. If the finding has changed
	// since, the verdict is stored, but the triage does not change.
	ContentHash int64
}

// Apply stores a verdict, and reports whether it changed the triage of the finding. It first locks the finding's
// project in the transaction. If the finding does not exist or is not visible, it returns ent's not-found error.
// Repeating a verdict changes nothing and records no event.
func Apply(ctx context.Context, st *store.Store, tx *ent.Tx, v Verdict) (applied bool, err error) {
	if v.Value != "" && v.Value != TruePositive && v.Value != FalsePositive {
		return false, fmt.Errorf("%w, got %.40q", ErrUnknownVerdict, v.Value)
	}
	v.bound()
	row, err := lock(ctx, st, tx, v.FindingID)
	if err != nil {
		return false, err
	}
	before, after, encoded, err := v.addTo(row.Content)
	if err != nil {
		return false, fmt.Errorf("content of finding %d: %w", row.ID, err)
	}
	triageState, err := v.triageState(ctx, tx, row)
	if err != nil {
		return false, err
	}
	applied = triageState != row.TriageState
	update := tx.Finding.Update().Where(finding.ID(row.ID)).SetContent(encoded)
	if v.Value != "" {
		update.SetAutotriageVerdict(v.Value)
	}
	if v.ComponentTag != "" {
		update.SetComponentTag(v.ComponentTag)
	}
	status := lifecycle.Status(row.State, triageState)
	now := store.Now()
	if applied {
		update.SetTriageState(triageState).SetStatus(status).ClearTriageReason()
		if triageState == lifecycle.ProvisionallyIgnored {
			update.SetTriagedAt(now)
		} else {
			update.ClearTriagedAt()
		}
		audit.Change(ctx, "finding", row.ID, before, after)
	}
	if err := update.Exec(ctx); err != nil {
		return false, err
	}
	if v.Value == "" || !applied && row.AutotriageVerdict != nil && *row.AutotriageVerdict == v.Value {
		return applied, nil
	}
	return applied, tx.FindingEvent.Create().SetDeploymentID(row.DeploymentID).SetFindingID(row.ID).SetKind(EventKind).
		SetFromStatus(row.Status).SetToStatus(status).SetReason(v.Value).SetNote(v.Reason).
		SetActorKind(v.ActorKind).SetActorID(v.ActorID).SetAt(now).Exec(ctx)
}

// triageState is the triage state after the verdict.
func (v Verdict) triageState(ctx context.Context, tx *ent.Tx, row *ent.Finding) (string, error) {
	switch {
	case v.ContentHash != 0 && v.ContentHash != row.ContentHash, row.IssueType != ruleBased:
		return row.TriageState, nil
	case v.Value == FalsePositive && row.TriageState == lifecycle.Untriaged && row.State == lifecycle.Unresolved:
		touched, err := triagedByAnybody(ctx, tx, row.ID)
		if err != nil || touched {
			return row.TriageState, err
		}
		return lifecycle.ProvisionallyIgnored, nil
	case v.Value == TruePositive && row.TriageState == lifecycle.ProvisionallyIgnored:
		touched, err := triagedByAnybody(ctx, tx, row.ID)
		if err != nil || touched {
			return row.TriageState, err
		}
		return lifecycle.Untriaged, nil
	}
	return row.TriageState, nil
}

// ruleBased is the issue type of code findings from rules. Findings of AI detection stay open.
const ruleBased = "sast"

// triagedByAnybody reports whether anyone except automation ever decided about the finding. A decision from another ref
// counts, because a person made it there.
func triagedByAnybody(ctx context.Context, tx *ent.Tx, id int64) (bool, error) {
	return tx.FindingEvent.Query().Where(findingevent.FindingID(id),
		findingevent.KindIn("triaged", "triage_spread", "triage_inherited"),
		findingevent.ActorKindNotIn(ActorJob, ActorWorkflow)).Exist(ctx)
}

// addTo adds the verdict to a finding's content. before and after are for the audit trail.
func (v Verdict) addTo(stored []byte) (before, after *findingsv1.AssistantAutotriage, encoded []byte, err error) {
	content, err := blob.Decode(stored)
	if err != nil {
		return nil, nil, nil, err
	}
	assistant := content.GetAssistant()
	if assistant == nil {
		assistant = &findingsv1.Assistant{}
	}
	before = assistant.GetAutotriage()
	if v.Value != "" {
		assistant.Autotriage = &findingsv1.AssistantAutotriage{Verdict: v.Value, Reason: v.Reason}
	}
	if v.GuidanceSummary != "" || v.GuidanceText != "" {
		assistant.Guidance = &findingsv1.AssistantGuidance{Summary: v.GuidanceSummary, Instructions: v.GuidanceText}
	}
	if v.FixCode != "" {
		assistant.Autofix = &findingsv1.AssistantAutofix{FixCode: v.FixCode, Explanation: v.FixExplanation}
	}
	if v.ComponentTag != "" {
		assistant.Component = &findingsv1.AssistantComponent{Tag: v.ComponentTag, Risk: v.ComponentRisk}
	}
	if v.RuleExplanation != "" {
		assistant.RuleExplanation = &findingsv1.AssistantRuleExplanation{Summary: v.RuleSummary, Explanation: v.RuleExplanation}
	}
	assistant.Failure = nil // of an earlier attempt
	content.Assistant = assistant
	encoded, err = blob.Encode(content)
	return before, assistant.GetAutotriage(), encoded, err
}
