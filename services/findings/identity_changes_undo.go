package findings

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/identitychange"
	"github.com/palisade/palisade/ent/predicate"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// UndoIdentityChange reverts a split, a merge or a move. Scan data that is newer than the change is kept.
func (s *FindingIdentity) UndoIdentityChange(ctx context.Context, r *findingsv1.UndoIdentityChangeRequest) (*findingsv1.UndoIdentityChangeResponse, error) {
	out := &findingsv1.UndoIdentityChangeResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := readChange(ctx, tx, r.GetIdentityChangeId())
		if err != nil {
			return err
		}
		e, err := s.begin(ctx, tx, row.ProjectID, r.GetNote())
		if err != nil {
			return err
		}
		if row, err = readChange(ctx, tx, row.ID); err != nil { // again: a concurrent request may have undone it before the lock
			return err
		}
		u := &undoing{identityEdit: e, service: s, change: row, before: &storev1.IdentityBefore{}}
		if err := u.run(ctx); err != nil {
			return err
		}
		named, err := u.load(ctx, finding.IDIn(row.FindingID, row.OtherID))
		if err != nil {
			return err
		}
		for _, one := range named {
			described, err := describeFinding(one.Finding)
			if err != nil {
				return err
			}
			out.Findings = append(out.Findings, described)
		}
		out.Change, err = u.markUndone(ctx)
		return err
	})
	return out, err
}

func readChange(ctx context.Context, tx *ent.Tx, id int64) (*ent.IdentityChange, error) {
	row, err := tx.IdentityChange.Query().Where(identitychange.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("no identity change %d", id)
	}
	return row, err
}

// undoing reverts one identity change.
type undoing struct {
	*identityEdit
	service *FindingIdentity
	change  *ent.IdentityChange
	before  *storev1.IdentityBefore
}

func (u *undoing) run(ctx context.Context) error {
	if u.change.UndoneAt != nil {
		return apierr.FailedPrecondition("identity change %d was undone already, at %s", u.change.ID, formatTime(*u.change.UndoneAt))
	}
	if err := proto.Unmarshal(u.change.Before, u.before); err != nil {
		return fmt.Errorf("identity change %d: %w", u.change.ID, err)
	}
	if err := u.refuseAfterChanges(ctx); err != nil {
		return err
	}
	if u.change.Kind == changeMove {
		return u.undoMove(ctx)
	}
	if _, err := u.loadByID(ctx, u.change.FindingID); err != nil {
		return err
	}
	rows, err := u.loadByIDs(ctx, u.involved()...)
	if err != nil {
		return err
	}
	// All findings of the identities in the change: there must be no newer decision about any of them.
	affected, err := u.loadIdentities(ctx, rows)
	if err != nil {
		return err
	}
	if err := u.refuseAfterDecisions(ctx, affected); err != nil {
		return err
	}
	if u.change.Kind == changeMerge {
		err = u.undoMerge(ctx, affected)
	} else {
		err = u.undoSplit(ctx)
	}
	if err != nil {
		return err
	}
	u.setStatuses()
	for _, row := range u.touched() {
		row.reason = fmt.Sprintf("%s %d undone", u.change.Kind, u.change.ID)
	}
	if err := u.save(ctx); err != nil {
		return err
	}
	return u.record(ctx, "identity_undone")
}

// markUndone marks the change as undone.
func (u *undoing) markUndone(ctx context.Context) (*findingsv1.IdentityChange, error) {
	before := convertChange(u.change)
	after, err := u.tx.IdentityChange.UpdateOne(u.change).SetUndoneAt(u.at).Save(ctx)
	if err != nil {
		return nil, err
	}
	undone := convertChange(after)
	audit.Change(ctx, identityChangeKind, u.change.ID, before, undone)
	return undone, nil
}

// involved returns the findings that the change changed, created or names.
func (u *undoing) involved() []int64 {
	return involvedIn(u.change, u.before)
}

func involvedIn(change *ent.IdentityChange, before *storev1.IdentityBefore) []int64 {
	ids := append(slices.Concat(before.GetCreated(), before.GetMoved()), change.FindingID)
	if change.OtherID != 0 {
		ids = append(ids, change.OtherID)
	}
	for _, row := range before.GetFindings() {
		ids = append(ids, row.GetFindingId())
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// loadIdentities loads the rows and all findings of their identities that are not merged.
func (u *undoing) loadIdentities(ctx context.Context, rows []*editedFinding) ([]*editedFinding, error) {
	var fingerprints []string
	for _, row := range rows {
		if row.MergedInto == nil {
			fingerprints = append(fingerprints, row.Fingerprint)
		}
	}
	for _, row := range u.before.GetFindings() {
		fingerprints = append(fingerprints, row.GetFingerprint())
	}
	slices.Sort(fingerprints)
	return u.load(ctx, finding.Or(store.WithIDs[predicate.Finding](u.involved()), finding.And(
		store.OneOf(finding.FieldFingerprint, slices.Compact(fingerprints)), finding.IssueType(rows[0].IssueType), finding.MergedIntoIsNil())))
}

// refuseAfterChanges returns an error if a later change, which is not undone, involves the same findings.
func (u *undoing) refuseAfterChanges(ctx context.Context) error {
	later, err := u.tx.IdentityChange.Query().Where(identitychange.ProjectID(u.projectID), identitychange.IDGT(u.change.ID), identitychange.UndoneAtIsNil()).
		Order(ent.Asc(identitychange.FieldID)).All(ctx)
	if err != nil {
		return err
	}
	mine := u.involved()
	for _, change := range later {
		before := &storev1.IdentityBefore{}
		if err := proto.Unmarshal(change.Before, before); err != nil {
			return fmt.Errorf("identity change %d: %w", change.ID, err)
		}
		for _, id := range involvedIn(change, before) {
			if _, hit := slices.BinarySearch(mine, id); hit {
				return apierr.FailedPrecondition("identity change %d cannot be undone: finding %d was changed again by the %s %d; undo that first",
					u.change.ID, id, change.Kind, change.ID)
			}
		}
	}
	return nil
}

// refuseAfterDecisions returns an error if one of the findings has a decision after the change. It would be unclear
// which identity the decision is for.
func (u *undoing) refuseAfterDecisions(ctx context.Context, affected []*editedFinding) error {
	ids := make([]int64, len(affected))
	for n, row := range affected {
		ids[n] = row.ID
	}
	own, err := u.tx.FindingEvent.Query().Where(eventsOf(u.involved()), findingevent.At(u.change.At), findingevent.KindIn("split", "merged")).Order(ent.Desc(findingevent.FieldID)).FirstID(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return err
	}
	since, err := u.tx.FindingEvent.Query().Where(eventsOf(ids), findingevent.IDGT(own), findingevent.Or(
		findingevent.KindIn("triaged", "triage_spread", "noted", "triage_undone"), findingevent.And(findingevent.Kind(verdict.EventKind), changesStatus))).Order(ent.Asc(findingevent.FieldID)).First(ctx)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return apierr.FailedPrecondition("identity change %d cannot be undone: finding %d has a later decision, at %s (%s)",
		u.change.ID, since.FindingID, formatTime(since.At), since.Kind)
}

// eventsOf limits events to the given findings. All ids are one parameter.
func eventsOf(ids []int64) predicate.FindingEvent {
	return func(s *entsql.Selector) { s.Where(store.InIDs(s.C(findingevent.FieldFindingID), ids)) }
}

// changesStatus selects events that changed the status.
func changesStatus(s *entsql.Selector) {
	s.Where(entsql.ColumnsNEQ(s.C(findingevent.FieldFromStatus), s.C(findingevent.FieldToStatus)))
}

func formatTime(micros int64) string { return store.Time(micros).Format("2006-01-02T15:04:05Z") }

// undoSplit merges the new identity into the old one again, on all refs that have it now.
func (u *undoing) undoSplit(ctx context.Context) error {
	row, created := u.rows[u.change.FindingID], u.rows[u.change.OtherID]
	u.undoesSplit = true
	if created != nil {
		return u.merge(ctx, created, row)
	}
	former, err := u.formerOf(row.ID)
	if err != nil {
		return err
	}
	siblings, err := u.loadIdentity(ctx, row, former.GetFingerprint())
	if err != nil {
		return err
	}
	siblings = slices.DeleteFunc(siblings, func(sibling *editedFinding) bool {
		return sibling.Tool != row.Tool || sibling.AnalysisCategory != row.AnalysisCategory
	})
	if len(siblings) == 0 {
		return apierr.FailedPrecondition("identity change %d cannot be undone: no finding on another ref still has the former identity", u.change.ID)
	}
	for _, sibling := range siblings {
		if sibling.Ref == row.Ref {
			return apierr.FailedPrecondition("identity change %d cannot be undone: finding %d now has the former identity on %s", u.change.ID, sibling.ID, row.Ref)
		}
	}
	if err := u.merge(ctx, row, siblings[0]); err != nil {
		return err
	}
	restoreDecision(row, former)
	return nil
}

func (u *undoing) formerOf(id int64) (*storev1.FindingBefore, error) {
	for _, before := range u.before.GetFindings() {
		if before.GetFindingId() == id {
			return before, nil
		}
	}
	return nil, fmt.Errorf("identity change %d does not say what finding %d was", u.change.ID, id)
}

func restoreDecision(row *editedFinding, former *storev1.FindingBefore) {
	row.TriageState, row.TriageReason = former.GetTriageState(), former.TriageReason
	row.TriageComment, row.TriagedAt = former.TriageComment, former.TriagedAt
}

// undoMerge restores the identity and the decision of each finding, and restores merged findings. If a merged finding
// supplied the scan data of its sibling, it takes the current scan data back.
func (u *undoing) undoMerge(ctx context.Context, affected []*editedFinding) error {
	merged := u.rows[u.change.FindingID].Fingerprint
	byIdentity := map[string][]*editedFinding{}
	for _, former := range u.before.GetFindings() {
		row := u.rows[former.GetFindingId()]
		if row == nil {
			return apierr.FailedPrecondition("identity change %d cannot be undone: finding %d is gone", u.change.ID, former.GetFindingId())
		}
		if err := u.restoreMerged(row, former); err != nil {
			return err
		}
		row.Fingerprint, row.reason = former.GetFingerprint(), "merge undone"
		restoreDecision(row, former)
		byIdentity[row.Fingerprint] = append(byIdentity[row.Fingerprint], row)
	}
	for _, row := range affected { // findings that the merge did not have to change
		if u.unchanged(row) && row.CreatedAt <= u.change.At && row.Fingerprint == merged {
			byIdentity[merged] = append(byIdentity[merged], row)
		}
	}
	for _, row := range affected {
		if u.unchanged(row) && row.CreatedAt > u.change.At && row.Fingerprint == merged {
			assign(row, merged, byIdentity)
		}
	}
	return u.refuseTaken(ctx)
}

// unchanged reports whether the change did not touch a finding.
func (u *undoing) unchanged(row *editedFinding) bool {
	_, err := u.formerOf(row.ID)
	return err != nil
}

// restoreMerged restores a finding that the merge removed.
func (u *undoing) restoreMerged(row *editedFinding, former *storev1.FindingBefore) error {
	if row.MergedInto == nil || former.MergedInto != nil {
		return nil
	}
	sibling := u.rows[*row.MergedInto]
	formerSibling, err := u.formerOf(*row.MergedInto)
	if err != nil {
		return err
	}
	row.MergedInto = nil
	if presence(former.GetState()) <= presence(formerSibling.GetState()) {
		row.State = former.GetState()
		return nil
	}
	if err := swapScanData(sibling, row); err != nil {
		return err
	}
	sibling.State = formerSibling.GetState()
	return nil
}

// assign moves a finding that got the merged identity after the merge to the identity with the same evidence.
func assign(row *editedFinding, merged string, byIdentity map[string][]*editedFinding) {
	fingerprint := merged
	for other, rows := range byIdentity {
		if other != merged && hasEvidence(rows, row) && !hasEvidence(byIdentity[merged], row) {
			fingerprint = other
		}
	}
	row.Fingerprint = fingerprint
	if row.TriageState == lifecycle.Untriaged || !lifecycle.Spreads(row.TriageState) {
		return
	}
	decided := latestDecision(byIdentity[fingerprint])
	if decided == nil {
		decided = &decision{state: lifecycle.Untriaged}
		row.TriageComment = nil
	}
	decided.apply(row, "merge undone")
}

func hasEvidence(rows []*editedFinding, like *editedFinding) bool {
	return slices.ContainsFunc(rows, func(row *editedFinding) bool {
		return like.MatchKey != nil && same(row.MatchKey, like.MatchKey)
	})
}

// refuseTaken returns an error if a new finding got a former identity since the change.
func (u *undoing) refuseTaken(ctx context.Context) error {
	type key struct{ fingerprint, ref, category string }
	wanted, fingerprints := map[key]int64{}, []string{}
	for _, row := range u.changed() {
		if row.Fingerprint != row.old.Fingerprint {
			wanted[key{row.Fingerprint, row.Ref, row.AnalysisCategory}] = row.ID
			fingerprints = append(fingerprints, row.Fingerprint)
		}
	}
	slices.Sort(fingerprints)
	rows, err := u.load(ctx, store.OneOf(finding.FieldFingerprint, slices.Compact(fingerprints)))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if id := wanted[key{row.old.Fingerprint, row.Ref, row.AnalysisCategory}]; id != 0 && id != row.ID && row.Fingerprint == row.old.Fingerprint {
			return apierr.FailedPrecondition("identity change %d cannot be undone: finding %d now has the former identity of finding %d",
				u.change.ID, row.ID, id)
		}
	}
	return nil
}
