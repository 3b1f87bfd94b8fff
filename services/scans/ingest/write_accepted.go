package ingest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/predicate"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// A suppression of kind external is a decision that somebody made in the tool. It becomes a decision of the scan,
// unless a person has decided here. It ends with the suppression. A suppression in the code only mutes the finding.

const external = "external"

// accepted is a finding that the tool's users accepted there.
type accepted struct {
	fingerprint, category string
	toolDecision
}

// toolDecision is what the tool says about the decision.
type toolDecision struct{ reason, note string }

// noteDecision remembers what the tool says about a finding. old is nil for a new one.
func (w *writer) noteDecision(i *Result, old *ent.Finding, event string) error {
	switch {
	case event != "" && old.State == lifecycle.Muted && old.IgnoredByPattern == nil && !i.Suppressed:
		w.released = append(w.released, old.ID)
	case i.Suppressed && (old == nil || old.TriageState == lifecycle.Untriaged):
		if err := i.load(); err != nil {
			return err
		}
		if s := i.Content.GetSuppression(); s.GetKind() == external {
			w.accepted = append(w.accepted, accepted{i.decidedFingerprint(old), i.Group.Category, toolDecisionOf(s)})
		}
	}
	return nil
}

func (i *Result) decidedFingerprint(old *ent.Finding) string {
	if old != nil {
		return old.Fingerprint
	}
	return i.fingerprint
}

// toolDecisionOf returns the reason and the note of an export of Palisade as they are. The note of another tool has its
// text, the kind and the person.
func toolDecisionOf(s *findingsv1.FindingSuppression) toolDecision {
	if s.GetReason() != "" {
		return toolDecision{s.GetReason(), s.GetJustification()}
	}
	return toolDecision{lifecycle.NoTriageReason, comment(s)}
}

func comment(s *findingsv1.FindingSuppression) string {
	by := "suppressed in the tool (" + s.GetKind() + ")"
	if s.GetAuthor() != "" {
		by += " by " + s.GetAuthor()
	}
	if s.GetJustification() == "" {
		return by
	}
	return s.GetJustification() + " – " + by
}

// recordDecisions stores the decisions of tools, and ends those without their suppression.
func (w *writer) recordDecisions(ctx context.Context) error {
	for part := range slices.Chunk(w.accepted, batchSize) {
		if err := w.accept(ctx, part); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(w.released, batchSize) {
		if err := w.release(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) accept(ctx context.Context, part []accepted) error {
	prints, told := make([]string, len(part)), map[storedKey]toolDecision{}
	for n, a := range part {
		prints[n], told[storedKey{a.fingerprint, a.category}] = a.fingerprint, a.toolDecision
	}
	rows, err := w.tx.Finding.Query().
		Where(finding.DeploymentID(w.deploymentID), finding.ProjectID(w.project.ID), finding.Ref(w.scan.Ref), finding.FingerprintIn(prints...),
			finding.State(lifecycle.Muted), finding.TriageState(lifecycle.Untriaged)).
		Select(finding.FieldID, finding.FieldFingerprint, finding.FieldAnalysisCategory, finding.FieldStatus).All(ctx)
	if err != nil {
		return err
	}
	ids := map[toolDecision][]int64{}
	var events []*ent.FindingEventCreate
	for _, row := range rows {
		d, known := told[storedKey{row.Fingerprint, row.AnalysisCategory}]
		if !known {
			continue
		}
		ids[d] = append(ids[d], row.ID)
		events = append(events, w.decision(row, lifecycle.Ignored, d.reason, d.note))
	}
	inOrder := func(a, b toolDecision) int {
		return cmp.Or(cmp.Compare(a.note, b.note), cmp.Compare(a.reason, b.reason))
	}
	for _, d := range slices.SortedFunc(maps.Keys(ids), inOrder) {
		update := w.tx.Finding.Update().Where(store.WithIDs[predicate.Finding](ids[d])).
			SetTriageState(lifecycle.Ignored).SetTriageReason(d.reason).SetTriagedAt(w.now).
			SetStatus(lifecycle.Status(lifecycle.Muted, lifecycle.Ignored))
		if d.note != "" {
			update.SetTriageComment(d.note)
		}
		if err := update.Exec(ctx); err != nil {
			return err
		}
	}
	return w.createEvents(ctx, events)
}

// release ends decisions of scans. The last decision about the finding tells who made it. After an undo, it is the one
// that was made at the time of the decision that stands.
func (w *writer) release(ctx context.Context, ids []int64) error {
	decided, err := w.tx.FindingEvent.Query().
		Where(findingevent.DeploymentID(w.deploymentID), func(s *entsql.Selector) { s.Where(store.InIDs(s.C(findingevent.FieldFindingID), ids)) },
			findingevent.KindIn("triaged", "triage_spread", "triage_inherited", "noted", "triage_undone")).
		Select(findingevent.FieldID, findingevent.FieldFindingID, findingevent.FieldKind, findingevent.FieldActorKind, findingevent.FieldAt).
		Order(ent.Asc(findingevent.FieldID)).All(ctx)
	if err != nil || len(decided) == 0 {
		return err
	}
	type decision struct{ finding, at int64 }
	byScan, last := map[decision]bool{}, map[int64]*ent.FindingEvent{}
	for _, event := range decided {
		last[event.FindingID] = event
		if event.Kind == "triaged" && event.ActorKind == "scan" {
			byScan[decision{event.FindingID, event.At}] = true
		}
	}
	maps.DeleteFunc(last, func(id int64, event *ent.FindingEvent) bool {
		return event.Kind != "triage_undone" && !byScan[decision{id, event.At}]
	})
	ours := slices.SortedFunc(maps.Keys(last), cmp.Compare[int64])
	rows, err := w.tx.Finding.Query().Where(store.WithIDs[predicate.Finding](ours), finding.TriageState(lifecycle.Ignored), finding.TriagedAtNotNil()).
		Select(finding.FieldID, finding.FieldState, finding.FieldStatus, finding.FieldTriagedAt).All(ctx)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(row *ent.Finding) bool {
		return last[row.ID].Kind == "triage_undone" && !byScan[decision{row.ID, *row.TriagedAt}]
	})
	if len(rows) == 0 {
		return nil
	}
	var events []*ent.FindingEventCreate
	released := map[string][]int64{} // by status: a policy may mute the finding still
	for _, row := range rows {
		status := lifecycle.Status(row.State, lifecycle.Untriaged)
		released[status] = append(released[status], row.ID)
		events = append(events, w.decision(row, status, "", "no longer suppressed in the tool"))
	}
	for _, status := range slices.Sorted(maps.Keys(released)) {
		err := w.tx.Finding.Update().Where(store.WithIDs[predicate.Finding](released[status])).
			SetTriageState(lifecycle.Untriaged).ClearTriageReason().ClearTriageComment().ClearTriagedAt().SetStatus(status).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return w.createEvents(ctx, events)
}

func (w *writer) createEvents(ctx context.Context, events []*ent.FindingEventCreate) error {
	for part := range slices.Chunk(events, batchSize) {
		if err := w.tx.FindingEvent.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) decision(row *ent.Finding, to, reason, note string) *ent.FindingEventCreate {
	return w.tx.FindingEvent.Create().SetDeploymentID(w.deploymentID).SetFindingID(row.ID).SetKind("triaged").
		SetFromStatus(row.Status).SetToStatus(to).SetReason(reason).SetNote(note).
		SetActorKind("scan").SetActorID(w.scan.ID).SetScanID(w.scan.ID).SetAt(w.now)
}
