package findings

import (
	"context"
	"strconv"
	"strings"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/triagechange"
	"github.com/palisade/palisade/ent/triagechangefinding"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

// changeHeader is the metadata key of the response header that has the id of the change that a call made.
const changeHeader = "x-change-id"

// nameChange sends the id of a change in a response header. 0 is none.
func nameChange(ctx context.Context, id int64) error {
	if id == 0 {
		return nil
	}
	return grpc.SetHeader(ctx, metadata.Pairs(changeHeader, strconv.FormatInt(id, 10)))
}

// ownChanges limits callers who are not administrators to their own changes: others may concern projects that the
// caller does not see, and decisions that the caller may not make.
func ownChanges(ctx context.Context) predicate.TriageChange {
	p, called := access.FromContext(ctx)
	grant, in := access.GrantFromContext(ctx)
	switch {
	case !called || !in:
		return func(s *entsql.Selector) { s.Where(entsql.False()) }
	case grant.Role == access.RoleAdmin:
		return func(*entsql.Selector) {}
	}
	return triagechange.And(triagechange.ActorKind(string(p.Kind)), triagechange.ActorID(p.ID))
}

// ListTriageChanges lists changes, newest first.
func (s *TriageChanges) ListTriageChanges(ctx context.Context, r *findingsv1.ListTriageChangesRequest) (*findingsv1.ListTriageChangesResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", nil
	digest, err := page.DigestOf("triage changes", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.TriageChange.Query().Where(ownChanges(ctx))
	if id := r.GetFindingId(); id != 0 {
		changes, err := s.changesOf(ctx, id)
		if err != nil {
			return nil, err
		}
		query.Where(store.WithIDs[predicate.TriageChange](changes))
	}
	if continued {
		query.Where(triagechange.IDLT(key.ID))
	}
	limit := defaultChanges
	if r.Limit != nil {
		limit = int(r.GetLimit())
	}
	rows, err := query.Order(ent.Desc(triagechange.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &findingsv1.ListTriageChangesResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		out.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	for _, row := range rows {
		out.Changes = append(out.Changes, convertTriageChange(row))
	}
	return out, s.nameFindings(ctx, rows, out.GetChanges())
}

// changesOf returns the ids of the changes of a finding that the caller sees.
func (s *TriageChanges) changesOf(ctx context.Context, findingID int64) (ids []int64, err error) {
	rows, err := s.store.Reader.TriageChangeFinding.Query().Where(triagechangefinding.FindingID(findingID)).
		Order(ent.Desc(triagechangefinding.FieldChangeID)).Limit(maxChangesOfFinding).Select(triagechangefinding.FieldChangeID).All(ctx)
	for _, row := range rows {
		ids = append(ids, row.ChangeID)
	}
	return ids, err
}

// maxChangesOfFinding limits the list of changes of one finding to the newest.
const maxChangesOfFinding = 10000

// UndoTriageChange restores the findings of a change.
func (s *TriageChanges) UndoTriageChange(ctx context.Context, r *findingsv1.UndoTriageChangeRequest) (*findingsv1.UndoTriageChangeResponse, error) {
	out := &findingsv1.UndoTriageChangeResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		query := tx.TriageChange.Query().Where(triagechange.ID(r.GetChangeId()), ownChanges(ctx))
		if s.store.Postgres() {
			query.ForUpdate()
		}
		of, err := query.Only(ctx)
		if ent.IsNotFound(err) {
			return apierr.NotFound("no change %d that you can undo: it was never made, is not yours, or is older than changes are kept", r.GetChangeId())
		}
		if err != nil {
			return err
		}
		undoing, err := s.prepareUndo(ctx, tx, of)
		if err != nil {
			return err
		}
		if _, err := triage.LockProjects(ctx, s.store, tx, inChange(of)); err != nil {
			return err
		}
		undone, err := triage.Undo(ctx, s.store, tx, undoing, newDecision(ctx, s.jobs, triage.KindUndo, "", "", ""))
		if err != nil {
			return err
		}
		if convertUndone(undone, out); undone.Change == nil && out.GetKeptCount() == 0 {
			return apierr.FailedPrecondition("change %d was undone already: undo its undo to make the decision again", of.ID)
		}
		if undone.Change == nil {
			return nil
		}
		auditChange(ctx, undone.Change)
		out.Change = describeChange(undone.Change)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nameChange(ctx, out.GetChange().GetId())
}

// prepareUndo refuses to undo a change twice, and an undo that a developer may not undo, because it would ignore
// findings.
func (s *TriageChanges) prepareUndo(ctx context.Context, tx *ent.Tx, of *ent.TriageChange) (*triage.Undoing, error) {
	if of.UndoneBy != nil {
		return nil, apierr.FailedPrecondition("change %d was undone already by change %d: undo that one to make the decision again", of.ID, *of.UndoneBy)
	}
	undoing, err := triage.FindDecision(ctx, tx, of)
	if ent.IsNotFound(err) {
		return nil, apierr.FailedPrecondition("change %d cannot be undone: the decision that it undid is older than changes are kept", of.ID)
	}
	if err != nil || !undoing.Redoes || !triage.Ignores(undoing.Decision.State) || !triage.ByDeveloper(ctx) {
		return undoing, err
	}
	types, err := tx.Finding.Query().Where(inChange(of)).Unique(true).Select(finding.FieldIssueType).Strings(ctx)
	if err != nil {
		return nil, err
	}
	for _, issueType := range types {
		if err := triage.RefuseDevelopers(ctx, tx.Client(), issueType, undoing.Decision.State); err != nil {
			return nil, err
		}
	}
	return undoing, nil
}

// inChange selects the findings of a change.
func inChange(of *ent.TriageChange) predicate.Finding {
	return func(s *entsql.Selector) {
		rows := entsql.Dialect(s.Dialect()).Table(triagechangefinding.Table)
		ids := entsql.Dialect(s.Dialect()).Select(rows.C(triagechangefinding.FieldFindingID)).From(rows)
		s.Where(entsql.In(s.C("id"), ids.Where(entsql.And(
			entsql.EQ(rows.C(triagechangefinding.FieldDeploymentID), of.DeploymentID), entsql.EQ(rows.C(triagechangefinding.FieldChangeID), of.ID)))))
	}
}

func convertUndone(undone *triage.Undone, out *findingsv1.UndoTriageChangeResponse) {
	out.RestoredCount = int32(undone.Restored)
	for reason, kept := range undone.Kept {
		if kept.Count > 0 {
			out.KeptCount += int32(kept.Count)
			out.Kept = append(out.Kept, &findingsv1.KeptFindings{Reason: keptReasons[reason], Count: int32(kept.Count), FindingIds: kept.IDs})
		}
	}
}

var keptReasons = [...]findingsv1.KeptReason{
	triage.KeptChangedSince: findingsv1.KeptReason_KEPT_REASON_CHANGED_SINCE,
	triage.KeptNotVisible:   findingsv1.KeptReason_KEPT_REASON_NOT_VISIBLE,
	triage.KeptGone:         findingsv1.KeptReason_KEPT_REASON_GONE,
}

// describeChange converts a change that was just made.
func describeChange(c *triage.Change) *findingsv1.TriageChange {
	return convertTriageChange(c.Row())
}

func convertTriageChange(row *ent.TriageChange) *findingsv1.TriageChange {
	return &findingsv1.TriageChange{
		Id: row.ID, Kind: valueOf[findingsv1.TriageChangeKind](findingsv1.TriageChangeKind_value, "TRIAGE_CHANGE_KIND_", row.Kind),
		TriageState:  valueOf[findingsv1.FindingTriageState](findingsv1.FindingTriageState_value, "FINDING_TRIAGE_STATE_", row.State),
		TriageReason: valueOf[findingsv1.FindingTriageReason](findingsv1.FindingTriageReason_value, "FINDING_TRIAGE_REASON_", row.Reason),
		Note:         row.Note, ActorKind: row.ActorKind, ActorId: row.ActorID, ActorName: row.ActorName,
		IssueCount: int32(row.Chosen), UpdatedCount: int32(row.Changed), At: timestamppb.New(store.Time(row.At)), UndoesId: row.UndoesID, UndoneBy: row.UndoneBy,
	}
}

// valueOf is the value of an enum for a word of the tables.
func valueOf[E ~int32](values map[string]int32, prefix, word string) E {
	return E(values[prefix+strings.ToUpper(word)])
}
