package ingest

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/pathignore"
)

// storedFindings reads the findings of this ref that the batch was joined to.
func (w *writer) storedFindings(ctx context.Context, batch []*Result) (map[int64]*ent.Finding, error) {
	var ids []int64
	for _, i := range batch {
		if id := i.knownID(); id != 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := w.tx.Finding.Query().Where(finding.DeploymentID(w.deploymentID)).Modify(store.FoundByIDs(ids)).
		Select(finding.FieldID, finding.FieldFingerprint, finding.FieldState, finding.FieldTriageState, finding.FieldStatus,
			finding.FieldContentHash, finding.FieldFirstSeenScanID, finding.FieldCreatedAt, finding.FieldRelevantSince,
			finding.FieldStateUpdatedAt, finding.FieldFilePath, finding.FieldEvidence, finding.FieldIgnoredByPattern,
			finding.FieldRuleID, finding.FieldIssueType, finding.FieldSeverity, finding.FieldExposure, finding.FieldValidationState,
			finding.FieldPolicyMode, finding.FieldMalicious).All(ctx)
	if err != nil {
		return nil, err
	}
	stored := make(map[int64]*ent.Finding, len(rows))
	for _, row := range rows {
		stored[row.ID] = row
	}
	if len(stored) != len(ids) {
		return nil, fmt.Errorf("%d results were joined to %d findings", len(ids), len(stored))
	}
	return stored, nil
}

// contents reads the contents of findings.
func (w *writer) contents(ctx context.Context, ids []int64) (map[int64]*storev1.FindingContent, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := w.tx.Finding.Query().Where(finding.DeploymentID(w.deploymentID)).Modify(store.FoundByIDs(ids)).
		Select(finding.FieldID, finding.FieldContent).All(ctx)
	if err != nil {
		return nil, err
	}
	contents := make(map[int64]*storev1.FindingContent, len(rows))
	for _, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return nil, fmt.Errorf("content of finding %d: %w", row.ID, err)
		}
		contents[row.ID] = content
	}
	return contents, nil
}

// foreignID is the id of the finding of another ref that a new finding equals; 0 if there is none.
func (i *Result) foreignID() int64 {
	if foreign := i.matches.foreign[i.result]; foreign != nil {
		return foreign.id
	}
	return 0
}

// foreignContents reads the contents of the findings of other refs that new findings equal, if the content is needed.
func (w *writer) foreignContents(ctx context.Context, fresh []*Result) (map[int64]*storev1.FindingContent, error) {
	var ids []int64
	for _, i := range fresh {
		if id := i.foreignID(); id != 0 && (i.rung() != "" || i.fingerprint != i.initialFingerprint) {
			ids = append(ids, id)
		}
	}
	return w.contents(ctx, ids)
}

// keep copies from the stored content what does not come from scans, and the ids of the finding. Neither is part of the
// hash.
func (c change) keep(old *storev1.FindingContent) error {
	verdict.Keep(old, c.Content)
	if c.renumbered {
		c.Content.SyntacticId = old.GetSyntacticId()
	}
	return c.keepID(old)
}

func (i *Result) keepID(old *storev1.FindingContent) (err error) {
	if !i.ownID && old.GetMatchBasedId() != "" {
		i.Content.MatchBasedId = old.GetMatchBasedId()
	}
	i.encoded, err = proto.MarshalOptions{Deterministic: true}.Marshal(i.Content)
	return err
}

// decisionsFor reads the latest decision about each finding that is new on this ref but known on another one, by
// fingerprint. Provisional decisions are not inherited, and diff scans inherit nothing.
func (w *writer) decisionsFor(ctx context.Context, fresh []*Result) (map[string]*ent.Finding, error) {
	var prints []string
	for _, i := range fresh {
		if w.scan.IsFullScan && i.elsewhere {
			prints = append(prints, i.fingerprint)
		}
	}
	if len(prints) == 0 {
		return nil, nil
	}
	rows, err := w.tx.Finding.Query().
		Where(finding.DeploymentID(w.deploymentID), finding.ProjectID(w.project.ID), finding.FingerprintIn(prints...), finding.MergedIntoIsNil(),
			finding.TriageStateNotIn(lifecycle.Untriaged, lifecycle.ProvisionallyIgnored)).
		Select(finding.FieldFingerprint, finding.FieldTriageState, finding.FieldTriageReason, finding.FieldTriageComment, finding.FieldTriagedAt).
		Order(ent.Asc(finding.FieldTriagedAt, finding.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	decisions := make(map[string]*ent.Finding, len(rows))
	for _, row := range rows {
		decisions[row.Fingerprint] = row
	}
	return decisions, nil
}

// closings reads the events that closed the findings which are reported again.
func (w *writer) closings(ctx context.Context, changed []change) (map[int64]*ent.FindingEvent, error) {
	var ids []int64
	for _, c := range changed {
		if c.event == "reopened" {
			ids = append(ids, c.old.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := w.tx.FindingEvent.Query().
		Where(findingevent.DeploymentID(w.deploymentID), func(s *entsql.Selector) { s.Where(store.InIDs(s.C(findingevent.FieldFindingID), ids)) },
			findingevent.KindIn(lifecycle.Fixed, lifecycle.Removed)).
		Select(findingevent.FieldID, findingevent.FieldFindingID, findingevent.FieldKind, findingevent.FieldScanID, findingevent.FieldAt).
		Order(ent.Asc(findingevent.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	last := make(map[int64]*ent.FindingEvent, len(ids))
	for _, row := range rows {
		last[row.FindingID] = row
	}
	return last, nil
}

// reason is the reason for a change of state, as text.
func (c change) reason(closed map[int64]*ent.FindingEvent) string {
	switch c.event {
	case "reopened":
		at, text := c.old.StateUpdatedAt, "seen again after it was "+c.old.State
		event := closed[c.old.ID]
		if event != nil {
			at = event.At
		}
		text += " on " + store.Time(at).Format("2006-01-02")
		if event != nil && event.ScanID != nil {
			text += fmt.Sprintf(" in scan %d", *event.ScanID)
		}
		if c.ignored {
			text += "; " + pathignore.Reason(c.pattern)
		}
		return text
	case pathignore.EventIgnored:
		return pathignore.Reason(c.pattern)
	case pathignore.EventReturned:
		return pathignore.Returned(*c.old.IgnoredByPattern)
	case "muted":
		return c.Content.GetSuppressionReason()
	case "unmuted":
		return "no longer suppressed in the code"
	}
	return ""
}
