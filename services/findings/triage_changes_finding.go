package findings

import (
	"context"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/triagechangefinding"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/store"
)

// maxUndoneRefs limits the undos that are searched for a single finding: an undo counts the refs that it restored as
// selected, so its number does not tell.
const maxUndoneRefs = 100

// nameFindings adds the finding to changes of a single one, if the caller sees it.
func (s *TriageChanges) nameFindings(ctx context.Context, rows []*ent.TriageChange, out []*findingsv1.TriageChange) error {
	of, err := s.singleFindings(ctx, rows)
	if err != nil || len(of) == 0 {
		return err
	}
	ids := make([]int64, 0, len(of))
	for _, id := range of {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	found, err := s.store.Reader.Finding.Query().Where(store.WithIDs[predicate.Finding](slices.Compact(ids))).All(ctx)
	if err != nil {
		return err
	}
	described, err := decidedFindings(ctx, s.store.Reader, found)
	if err != nil {
		return err
	}
	for _, change := range out {
		change.Finding = described[of[change.GetId()]]
	}
	return nil
}

// singleFindings returns the selected finding of each change that has one, by the id of the change.
func (s *TriageChanges) singleFindings(ctx context.Context, rows []*ent.TriageChange) (map[int64]int64, error) {
	var changes []int64
	for _, row := range rows {
		if row.Chosen == 1 || row.Kind == triage.KindUndo && row.Chosen <= maxUndoneRefs {
			changes = append(changes, row.ID)
		}
	}
	if len(changes) == 0 {
		return nil, nil
	}
	kept, err := s.store.Reader.TriageChangeFinding.Query().Where(store.OneOf(triagechangefinding.FieldChangeID, changes), triagechangefinding.Chosen(true)).
		Select(triagechangefinding.FieldChangeID, triagechangefinding.FieldFindingID).All(ctx)
	if err != nil {
		return nil, err
	}
	of := map[int64]int64{}
	for _, row := range kept {
		if _, several := of[row.ChangeID]; several {
			row.FindingID = 0
		}
		of[row.ChangeID] = row.FindingID
	}
	maps.DeleteFunc(of, func(_, finding int64) bool { return finding == 0 })
	return of, nil
}

// decidedFindings describes findings, by id.
func decidedFindings(ctx context.Context, db *ent.Client, rows []*ent.Finding) (map[int64]*findingsv1.DecidedFinding, error) {
	projects, rules := make([]int64, len(rows)), make([]int64, len(rows))
	for i, row := range rows {
		projects[i], rules[i] = row.ProjectID, row.RuleID
	}
	names, err := namesOf(ctx, db, projects, rules)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]*findingsv1.DecidedFinding, len(rows))
	for _, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return nil, err
		}
		out[row.ID] = &findingsv1.DecidedFinding{
			FindingId: row.ID, Project: names.projects[row.ProjectID], Ref: row.Ref, RuleName: names.rules[row.RuleID],
			FilePath: content.GetLocation().GetFilePath(), Line: content.GetLocation().GetLine(),
		}
	}
	return out, nil
}
