package ignores

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/store"
	policy "github.com/palisade/palisade/services/policies/pathignore"
)

// row has the columns that decide.
type row struct {
	ID        int64   `sql:"id"`
	ProjectID int64   `sql:"project_id"`
	IssueType string  `sql:"issue_type"`
	FilePath  *string `sql:"file_path"`
	Pattern   *string `sql:"ignored_by_pattern"`
}

// findingsOf reads the findings of a window or of a batch, by id.
func findingsOf(ctx context.Context, db *ent.Client, where ...predicate.Finding) (rows []row, err error) {
	err = db.Finding.Query().Where(where...).Where(finding.MergedIntoIsNil()).Order(ent.Asc(finding.FieldID)).
		Select(finding.FieldID, finding.FieldProjectID, finding.FieldIssueType, finding.FieldFilePath, finding.FieldIgnoredByPattern).Scan(ctx, &rows)
	return rows, err
}

// change is a new pattern of a finding, and the one before; empty means none.
type change struct{ from, to string }

// changes has the findings of each change.
type changes map[change][]int64

// ids are the sorted ids of all findings that change.
func (c changes) ids() (ids []int64) {
	for _, part := range c {
		ids = append(ids, part...)
	}
	slices.Sort(ids)
	return ids
}

// changesOf decides about findings by the stored patterns.
func changesOf(ctx context.Context, db *ent.Client, rows []row) (changes, error) {
	stored, err := policy.Read(ctx, db)
	if err != nil {
		return nil, err
	}
	matchers, err := matchersOf(ctx, db, stored, rows)
	if err != nil {
		return nil, err
	}
	out := changes{}
	for _, r := range rows {
		c := change{from: textOf(r.Pattern)}
		c.to, _ = matchers[r.ProjectID].Match(r.IssueType, textOf(r.FilePath))
		if c.from != c.to {
			out[c] = append(out[c], r.ID)
		}
	}
	return out, nil
}

// matchersOf returns the patterns of the findings' projects.
func matchersOf(ctx context.Context, db *ent.Client, stored policy.Policy, rows []row) (map[int64]*policy.Matcher, error) {
	matchers := map[int64]*policy.Matcher{}
	for _, r := range rows {
		matchers[r.ProjectID] = nil
	}
	if len(matchers) == 0 {
		return matchers, nil
	}
	projects, err := db.Project.Query().Where(store.OneOf(project.FieldID, slices.Sorted(maps.Keys(matchers)))).
		Select(project.FieldID, project.FieldIgnoredFiles, project.FieldProductIgnoredFiles).All(ctx)
	for _, p := range projects {
		matchers[p.ID] = stored.For(p)
	}
	return matchers, err
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// store writes the changes and an event for each finding, in a fixed order.
func (c changes) store(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID int64) error {
	now := store.Now()
	for _, of := range slices.SortedFunc(maps.Keys(c), func(a, b change) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	}) {
		kind, reason, state, pattern := policy.EventIgnored, policy.Reason(of.to), lifecycle.Muted, any(of.to)
		if of.to == "" {
			kind, reason, state, pattern = policy.EventReturned, policy.Returned(of.from), lifecycle.Unresolved, nil
		}
		status := triage.StatusSQL("CAST(? AS TEXT)", "triage_state")
		among, ids := st.InIDs(c[of])
		states := []any{state, state, state} // StatusSQL names the state three times
		args := append(append([]any{kind}, states...), reason, policy.Actor, now, deploymentID)
		err := st.Exec(ctx, tx, `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, at)
			SELECT deployment_id, id, CAST(? AS TEXT), status, `+status+`, CAST(? AS TEXT), '', CAST(? AS TEXT), 0, CAST(? AS bigint) FROM findings
			WHERE +deployment_id = ? AND id`+among, append(args, ids...)...)
		if err != nil {
			return err
		}
		args = append(append([]any{state, pattern}, states...), deploymentID)
		err = st.Exec(ctx, tx, `UPDATE findings SET state = ?, ignored_by_pattern = ?, status = `+status+`
			WHERE +deployment_id = ? AND id`+among, append(args, ids...)...)
		if err != nil {
			return err
		}
	}
	return nil
}
