// Package verdict stores what automation says about a finding: the verdict with its reason, the guidance, a fix and the
// component. AI tasks and workflow steps use it, so that both obey the same rules.
//
// Automation never overrules people. It may provisionally ignore a rule-based code finding that is open and that nobody
// has decided about, and take that back; nothing else about the triage of a finding is its business (contract facts,
// section 4).
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

// Verdicts, as the contract writes them.
const (
	TruePositive  = "true_positive"
	FalsePositive = "false_positive"
)

// EventKind is the kind of the finding event of a verdict.
const EventKind = "autotriaged"

// Actors of verdicts, in the words of finding events.
const (
	ActorJob      = "job"
	ActorWorkflow = "workflow"
)

// ErrUnknownVerdict refuses a word that is no verdict.
var ErrUnknownVerdict = errors.New("verdict must be true_positive, false_positive or empty")

// Verdict is what automation says about one finding. Empty texts say nothing: what is stored stays.
type Verdict struct {
	FindingID int64
	// Value is TruePositive, FalsePositive, or empty for none.
	Value, Reason string
	// Guidance says how to fix it: in one sentence, and step by step.
	GuidanceSummary, GuidanceText string
	// FixCode replaces the matched lines; FixDiff is the same as a unified diff.
	FixCode, FixDiff, FixExplanation string
	// ComponentTag is the part of the product; ComponentRisk is high, low or neutral.
	ComponentTag, ComponentRisk string
	// ActorKind and ActorID are in the words of finding events: ActorJob with its id, or ActorWorkflow with the run's.
	ActorKind string
	ActorID   int64
	// ContentHash is that of the finding when it was asked about; 0: not known. A verdict about a finding that has changed
	// since is late: it is stored, but the triage stays.
	ContentHash int64
}

// Apply stores a verdict, and reports whether it changed the triage of the finding. It takes part in the transaction,
// in which it locks the finding's project first. A finding that is not there (or not visible) is ent's not-found error.
// The same verdict again changes nothing and makes no event.
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

// triageState is where the verdict leads.
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

// ruleBased is the issue type of code findings that rules made; what AI detection finds stays open.
const ruleBased = "sast"

// triagedByAnybody reports whether somebody else than automation ever decided about the finding. A decision that came
// from another ref counts: a person took it there.
func triagedByAnybody(ctx context.Context, tx *ent.Tx, id int64) (bool, error) {
	return tx.FindingEvent.Query().Where(findingevent.FindingID(id),
		findingevent.KindIn("triaged", "triage_spread", "triage_inherited"),
		findingevent.ActorKindNotIn(ActorJob, ActorWorkflow)).Exist(ctx)
}

// addTo puts what the verdict says into a finding's content. before and after are what the audit trail shows.
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
	content.Assistant = assistant
	encoded, err = blob.Encode(content)
	return before, assistant.GetAutotriage(), encoded, err
}
