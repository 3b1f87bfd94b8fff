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

// UndoIdentityChange takes a split or a merge back. What scans have seen since stays true.
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
		if row, err = readChange(ctx, tx, row.ID); err != nil { // again: another one may have undone it before the project was held
			return err
		}
		u := &undoing{identityEdit: e, change: row, before: &storev1.IdentityBefore{}}
		if err := u.run(ctx); err != nil {
			return err
		}
		named, err := u.load(ctx, finding.IDIn(row.FindingID, row.OtherID))
		if err != nil {
			return err
		}
		for _, one := range named {
			shown, err := describeFinding(one.Finding)
			if err != nil {
				return err
			}
			out.Findings = append(out.Findings, shown)
		}
		out.Change, err = u.note(ctx)
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

// undoing takes one change back.
type undoing struct {
	*identityEdit
	change *ent.IdentityChange
	before *storev1.IdentityBefore
}

func (u *undoing) run(ctx context.Context) error {
	if u.change.UndoneAt != nil {
		return apierr.FailedPrecondition("identity change %d was undone already, at %s", u.change.ID, moment(*u.change.UndoneAt))
	}
	if err := proto.Unmarshal(u.change.Before, u.before); err != nil {
		return fmt.Errorf("identity change %d: %w", u.change.ID, err)
	}
	if err := u.refuseAfterChanges(ctx); err != nil {
		return err
	}
	if _, err := u.one(ctx, u.change.FindingID); err != nil {
		return err
	}
	rows, err := u.named(ctx, u.involved()...)
	if err != nil {
		return err
	}
	// The names that the change has dealt with: nobody may have decided about any finding of them since.
	family, err := u.families(ctx, rows)
	if err != nil {
		return err
	}
	if err := u.refuseAfterDecisions(ctx, family); err != nil {
		return err
	}
	if u.change.Kind == changeMerge {
		err = u.part(ctx, family)
	} else {
		err = u.join(ctx)
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

// note marks the change as undone.
func (u *undoing) note(ctx context.Context) (*findingsv1.IdentityChange, error) {
	before := convertChange(u.change)
	after, err := u.tx.IdentityChange.UpdateOne(u.change).SetUndoneAt(u.at).Save(ctx)
	if err != nil {
		return nil, err
	}
	shown := convertChange(after)
	audit.Change(ctx, identityChangeKind, u.change.ID, before, shown)
	return shown, nil
}

// involved are the findings that a change has changed, made or named.
func (u *undoing) involved() []int64 {
	return involvedIn(u.change, u.before)
}

func involvedIn(change *ent.IdentityChange, before *storev1.IdentityBefore) []int64 {
	ids := append(slices.Clone(before.GetCreated()), change.FindingID)
	if change.OtherID != 0 {
		ids = append(ids, change.OtherID)
	}
	for _, row := range before.GetFindings() {
		ids = append(ids, row.GetFindingId())
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// families are the rows with all living ones of their names.
func (u *undoing) families(ctx context.Context, rows []*editedFinding) ([]*editedFinding, error) {
	var names []string
	for _, row := range rows {
		if row.MergedInto == nil {
			names = append(names, row.Fingerprint)
		}
	}
	for _, row := range u.before.GetFindings() {
		names = append(names, row.GetFingerprint())
	}
	slices.Sort(names)
	return u.load(ctx, finding.Or(store.WithIDs[predicate.Finding](u.involved()), finding.And(
		store.OneOf(finding.FieldFingerprint, slices.Compact(names)), finding.IssueType(rows[0].IssueType), finding.MergedIntoIsNil())))
}

// refuseAfterChanges refuses while a later change stands that has to do with the same findings.
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

// refuseAfterDecisions refuses when somebody has decided about one of the findings since: whose decision it is would be
// a guess.
func (u *undoing) refuseAfterDecisions(ctx context.Context, family []*editedFinding) error {
	ids := make([]int64, len(family))
	for n, row := range family {
		ids[n] = row.ID
	}
	own, err := u.tx.FindingEvent.Query().Where(eventsOf(u.involved()), findingevent.At(u.change.At), findingevent.KindIn("split", "merged")).Order(ent.Desc(findingevent.FieldID)).FirstID(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return err
	}
	since, err := u.tx.FindingEvent.Query().Where(eventsOf(ids), findingevent.IDGT(own), findingevent.Or(
		findingevent.KindIn("triaged", "triage_spread", "noted"), findingevent.And(findingevent.Kind(verdict.EventKind), changesStatus))).Order(ent.Asc(findingevent.FieldID)).First(ctx)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return apierr.FailedPrecondition("identity change %d cannot be undone: finding %d was decided about since, at %s (%s)",
		u.change.ID, since.FindingID, moment(since.At), since.Kind)
}

// eventsOf limits events to those of findings, however many.
func eventsOf(ids []int64) predicate.FindingEvent {
	return func(s *entsql.Selector) { s.Where(store.InIDs(s.C(findingevent.FieldFindingID), ids)) }
}

// changesStatus chooses events that are more than a note.
func changesStatus(s *entsql.Selector) {
	s.Where(entsql.ColumnsNEQ(s.C(findingevent.FieldFromStatus), s.C(findingevent.FieldToStatus)))
}

func moment(micros int64) string { return store.Time(micros).Format("2006-01-02T15:04:05Z") }

// join undoes a split: the new identity becomes the old one again, on all refs that have it by now.
func (u *undoing) join(ctx context.Context) error {
	row, fresh := u.rows[u.change.FindingID], u.rows[u.change.OtherID]
	u.undoesSplit = true
	if fresh != nil {
		return u.merge(ctx, fresh, row)
	}
	former, err := u.formerOf(row.ID)
	if err != nil {
		return err
	}
	twins, err := u.family(ctx, row, former.GetFingerprint())
	if err != nil {
		return err
	}
	twins = slices.DeleteFunc(twins, func(twin *editedFinding) bool {
		return twin.Tool != row.Tool || twin.AnalysisCategory != row.AnalysisCategory
	})
	if len(twins) == 0 {
		return apierr.FailedPrecondition("identity change %d cannot be undone: no finding on another ref has the former identity any more", u.change.ID)
	}
	for _, twin := range twins {
		if twin.Ref == row.Ref {
			return apierr.FailedPrecondition("identity change %d cannot be undone: finding %d is the one of the former identity on %s by now", u.change.ID, twin.ID, row.Ref)
		}
	}
	if err := u.merge(ctx, row, twins[0]); err != nil {
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

// part undoes a merge: each finding gets its name and decision back, and those that died live again. On a ref where the
// other one gave evidence and content, it takes along what scans say of them by now.
func (u *undoing) part(ctx context.Context, family []*editedFinding) error {
	merged := u.rows[u.change.FindingID].Fingerprint
	parted := map[string][]*editedFinding{}
	for _, former := range u.before.GetFindings() {
		row := u.rows[former.GetFindingId()]
		if row == nil {
			return apierr.FailedPrecondition("identity change %d cannot be undone: finding %d is gone", u.change.ID, former.GetFindingId())
		}
		if err := u.revive(row, former); err != nil {
			return err
		}
		row.Fingerprint, row.reason = former.GetFingerprint(), "merge undone"
		restoreDecision(row, former)
		parted[row.Fingerprint] = append(parted[row.Fingerprint], row)
	}
	for _, row := range family { // findings that the merge did not have to change
		if u.unchanged(row) && row.CreatedAt <= u.change.At && row.Fingerprint == merged {
			parted[merged] = append(parted[merged], row)
		}
	}
	for _, row := range family {
		if u.unchanged(row) && row.CreatedAt > u.change.At && row.Fingerprint == merged {
			adopt(row, merged, parted)
		}
	}
	return u.refuseTaken(ctx)
}

// unchanged says that the change had nothing to do with a finding.
func (u *undoing) unchanged(row *editedFinding) bool {
	_, err := u.formerOf(row.ID)
	return err != nil
}

// revive makes a finding that died in the merge live again.
func (u *undoing) revive(row *editedFinding, former *storev1.FindingBefore) error {
	if row.MergedInto == nil || former.MergedInto != nil {
		return nil
	}
	twin := u.rows[*row.MergedInto]
	formerTwin, err := u.formerOf(*row.MergedInto)
	if err != nil {
		return err
	}
	row.MergedInto = nil
	if presence(former.GetState()) <= presence(formerTwin.GetState()) {
		row.State = former.GetState()
		return nil
	}
	if err := swapSight(twin, row); err != nil {
		return err
	}
	twin.State = formerTwin.GetState()
	return nil
}

// adopt gives a finding that came to the merged name since to the identity whose evidence it has.
func adopt(row *editedFinding, merged string, parted map[string][]*editedFinding) {
	name := merged
	for other, rows := range parted {
		if other != merged && hasEvidence(rows, row) && !hasEvidence(parted[merged], row) {
			name = other
		}
	}
	row.Fingerprint = name
	if row.TriageState == lifecycle.Untriaged || !lifecycle.Spreads(row.TriageState) {
		return
	}
	decided := decisionOn(parted[name])
	if decided == nil {
		decided = &decisionAbout{state: lifecycle.Untriaged}
		row.TriageComment = nil
	}
	decided.apply(row, "merge undone")
}

func hasEvidence(rows []*editedFinding, like *editedFinding) bool {
	return slices.ContainsFunc(rows, func(row *editedFinding) bool {
		return like.MatchKey != nil && same(row.MatchKey, like.MatchKey)
	})
}

// refuseTaken refuses when a scan has given a former name to a new finding since.
func (u *undoing) refuseTaken(ctx context.Context) error {
	type slot struct{ name, ref, category string }
	wanted, names := map[slot]int64{}, []string{}
	for _, row := range u.changed() {
		if row.Fingerprint != row.old.Fingerprint {
			wanted[slot{row.Fingerprint, row.Ref, row.AnalysisCategory}] = row.ID
			names = append(names, row.Fingerprint)
		}
	}
	slices.Sort(names)
	rows, err := u.load(ctx, store.OneOf(finding.FieldFingerprint, slices.Compact(names)))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if id := wanted[slot{row.old.Fingerprint, row.Ref, row.AnalysisCategory}]; id != 0 && id != row.ID && row.Fingerprint == row.old.Fingerprint {
			return apierr.FailedPrecondition("identity change %d cannot be undone: finding %d has the former name of finding %d by now",
				u.change.ID, row.ID, id)
		}
	}
	return nil
}
