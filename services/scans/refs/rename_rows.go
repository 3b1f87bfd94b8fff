package refs

import (
	"cmp"
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
)

// correctBranches corrects the branches of the project. Its default branch is guessed again, as its scans would have
// set it. The ref was no branch, so it is not recorded as a former one.
func (r *renamer) correctBranches(ctx context.Context, tx *ent.Tx) (int, error) {
	row, err := tx.Project.Query().Where(project.ID(r.project.ID)).Only(ctx)
	if err != nil || row.DefaultBranch != r.ref && row.PrimaryBranch != r.ref {
		return 0, err
	}
	update := row.Update()
	if row.PrimaryBranch == r.ref {
		update.SetPrimaryBranch("")
	}
	if row.DefaultBranch == r.ref {
		var scanned []firstScan
		err := tx.Scan.Query().Where(scan.ProjectID(row.ID), scan.IsFullScan(true), scan.RefNEQ(r.ref)).
			GroupBy(scan.FieldRef).Aggregate(ent.Min(scan.FieldID)).Scan(ctx, &scanned)
		if err != nil {
			return 0, err
		}
		slices.SortFunc(scanned, func(a, b firstScan) int { return cmp.Compare(a.Min, b.Min) })
		best := ""
		for _, one := range scanned {
			if gitref.IsBranch(one.Ref) && gitref.BetterDefault(best, one.Ref) {
				best = one.Ref
			}
		}
		update.SetDefaultBranch(best)
	}
	return 0, update.Exec(ctx)
}

// firstScan is the first full scan of a ref.
type firstScan struct {
	Ref string `sql:"ref"`
	Min int64  `sql:"min"`
}

// moveFindings moves a batch of findings, and returns how many there were.
func (r *renamer) moveFindings(ctx context.Context, tx *ent.Tx) (int, error) {
	last, err := tx.Scan.Query().Where(scan.ProjectID(r.project.ID), scan.Ref(r.ref)).Order(ent.Desc(scan.FieldID)).Limit(1).All(ctx)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	target := gitref.Scanned("", last[0].Commit)
	if target == r.ref {
		return 0, nil
	}
	ids, err := tx.Finding.Query().Where(finding.ProjectID(r.project.ID), finding.Ref(r.ref), finding.MergedIntoIsNil()).
		Order(ent.Asc(finding.FieldID)).Limit(renameBatch).IDs(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if err := r.mergeTwins(ctx, tx, target, ids); err != nil {
		return 0, err
	}
	among, list := r.store.InIDs(ids)
	err = r.store.Exec(ctx, tx, `UPDATE findings SET ref = ? WHERE +deployment_id = ? AND merged_into IS NULL AND id`+among,
		append([]any{target, r.project.DeploymentID}, list...)...)
	r.findings += len(ids)
	return len(ids), err
}

// mergeTwins merges the findings that the target ref has already, because a node of this version stored a scan of the
// same commit. They get a ref of their own: the name has to be free for scans of an earlier version.
func (r *renamer) mergeTwins(ctx context.Context, tx *ent.Tx, target string, ids []int64) error {
	const twin = `FROM findings twin WHERE twin.deployment_id = findings.deployment_id AND twin.project_id = findings.project_id
		AND twin.fingerprint = findings.fingerprint AND twin.ref = ? AND twin.analysis_category = findings.analysis_category`
	among, list := r.store.InIDs(ids)
	now := store.Now()
	err := r.store.Exec(ctx, tx, `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, at)
		SELECT deployment_id, id, 'removed', status, 'removed', ?, '', '`+actorJob+`', 0, ? FROM findings
		WHERE +deployment_id = ? AND id`+among+` AND EXISTS (SELECT 1 `+twin+`)`,
		append(append([]any{"it was found again on " + target, now, r.project.DeploymentID}, list...), target)...)
	if err != nil {
		return err
	}
	return r.store.Exec(ctx, tx, `UPDATE findings SET state = 'removed', status = 'removed', state_updated_at = ?, merged_into = (SELECT twin.id `+twin+`),
		ref = CAST(? AS TEXT) || CAST(id AS TEXT) WHERE +deployment_id = ? AND id`+among+` AND EXISTS (SELECT 1 `+twin+`)`,
		append(append([]any{now, target, target + "/", r.project.DeploymentID}, list...), target)...)
}

// moveScans moves a batch of scans with their coverages and held closes, and returns how many there were.
func (r *renamer) moveScans(ctx context.Context, tx *ent.Tx) (int, error) {
	ids, err := tx.Scan.Query().Where(scan.ProjectID(r.project.ID), scan.Ref(r.ref), movable(r.ref)).Order(ent.Asc(scan.FieldID)).Limit(renameBatch).IDs(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	among, list := r.store.InIDs(ids)
	args := append([]any{r.project.DeploymentID}, list...)
	const target = `CASE WHEN ` + hasCommit + ` THEN '` + gitref.DetachedPrefix + `' || lower("commit") ELSE '` + gitref.UnknownCommit + `' END`
	for _, table := range []string{"scan_coverages", "held_closes"} {
		err := r.store.Exec(ctx, tx, `UPDATE `+table+` SET ref = (SELECT `+target+` FROM scans WHERE scans.id = scan_id AND scans.deployment_id = `+table+`.deployment_id)
			WHERE deployment_id = ? AND scan_id`+among+" AND ref = ?", append(slices.Clone(args), r.ref)...)
		if err != nil {
			return 0, err
		}
	}
	if err := r.store.Exec(ctx, tx, `UPDATE scans SET ref = `+target+` WHERE +deployment_id = ? AND id`+among, args...); err != nil {
		return 0, err
	}
	r.scans += len(ids)
	return len(ids), nil
}
