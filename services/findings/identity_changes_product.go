package findings

import (
	"cmp"
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/policies/pathignore"
	"github.com/palisade/palisade/services/scans/ingest"
)

// recastBatch is how many findings are in memory while their product changes.
const recastBatch = 1000

// recastAlike gives findings the other product. It returns the ones that scans would match with another finding of that
// product.
func (m *findingMove) recastAlike(ctx context.Context, moved, others []*ent.Finding) (twins []twin, err error) {
	if err := m.recast(ctx, moved, m.to.product, nil); err != nil {
		return nil, err
	}
	refs := map[string][2][]*ent.Finding{}
	for side, rows := range [][]*ent.Finding{moved, others} {
		for _, row := range rows {
			if row.MergedInto == nil && row.Evidence != nil {
				both := refs[row.Ref]
				both[side] = append(both[side], row)
				refs[row.Ref] = both
			}
		}
	}
	for _, both := range refs {
		twins = append(twins, matchTwins(both[0], both[1])...)
	}
	slices.SortFunc(twins, func(a, b twin) int { return cmp.Compare(a.other.ID, b.other.ID) })
	return twins, nil
}

// matchTwins matches the findings of two products of a ref as a scan does. What is in the code comes first.
func matchTwins(rows, others []*ent.Finding) (twins []twin) {
	taken := map[int64]bool{}
	for _, seen := range []bool{true, false} {
		var known []identity.Known
		var left, results []*ent.Finding
		var evidence []identity.Evidence
		for _, row := range rows {
			if decoded, _, err := identity.Decode(*row.Evidence); err == nil && !taken[row.ID] {
				left = append(left, row)
				known = append(known, identity.Known{Evidence: decoded, ID: row.ID, Open: lifecycle.Seen(row.State)})
			}
		}
		for _, other := range others {
			if decoded, _, err := identity.Decode(*other.Evidence); err == nil && lifecycle.Seen(other.State) == seen {
				results, evidence = append(results, other), append(evidence, decoded)
			}
		}
		for n, join := range identity.Match(known, evidence, identity.Options{}) {
			if join.Known >= 0 {
				taken[left[join.Known].ID] = true
				twins = append(twins, twin{left[join.Known], results[n]})
			}
		}
	}
	return twins
}

// recast gives findings another product in parts, with the columns that they had in it before, and keeps the columns
// that the other product does not have.
func (m *findingMove) recast(ctx context.Context, rows []*ent.Finding, product string, columns []*storev1.FindingColumns) error {
	had := make(map[int64]*storev1.FindingColumns, len(columns))
	for _, one := range columns {
		had[one.GetFindingId()] = one
	}
	for part := range slices.Chunk(rows, recastBatch) {
		e := *m.identityEdit
		e.rows = map[int64]*editedFinding{}
		loaded, err := e.loadByIDs(ctx, findingIDs(part)...)
		if err != nil {
			return err
		}
		list := make([]*ent.Finding, len(loaded))
		for n, row := range loaded {
			list[n] = row.Finding
			m.keepColumns(row.Finding)
			if last := m.lastOf[row.Ref]; last != 0 && row.LastSeenScanID == nil {
				row.LastSeenScanID = &last // no scan of the new product reported it
			}
		}
		if err := ingest.Recast(ctx, m.store, m.tx, list, product, m.redactionKey); err != nil {
			return err
		}
		for _, row := range list {
			if one := had[row.ID]; one != nil {
				row.Exposure, row.Malicious, row.ValidationState = one.Exposure, one.Malicious, one.ValidationState
			}
		}
		for _, row := range part {
			if now := e.rows[row.ID]; now != nil {
				row.Evidence, row.MatchKey = now.Evidence, now.MatchKey
			}
		}
		if err := e.save(ctx); err != nil {
			return err
		}
	}
	return nil
}

// keepColumns notes what only scans say about a finding of its present product.
func (m *findingMove) keepColumns(row *ent.Finding) {
	if row.Malicious != nil || row.Exposure != nil && *row.Exposure != ingest.UnknownExposure ||
		row.ValidationState != nil && *row.ValidationState != ingest.NoValidator {
		m.columns = append(m.columns, &storev1.FindingColumns{
			FindingId: row.ID, Exposure: row.Exposure, Malicious: row.Malicious, ValidationState: row.ValidationState,
		})
	}
}

// writeProduct finishes a move to another product. Twins of moved findings give them what later scans reported, and are
// removed with the former product.
func (m *findingMove) writeProduct(ctx context.Context, moved []*ent.Finding, twins []twin) (*storev1.IdentityBefore, error) {
	pairs, err := m.loadTwins(ctx, twins)
	if err != nil {
		return nil, err
	}
	before := &storev1.IdentityBefore{Columns: m.columns}
	paired := map[int64]bool{}
	for _, p := range pairs {
		before.Findings, before.Kept = append(before.Findings, beforeOf(p.other)), append(before.Kept, beforeOf(p.row))
		if err := swapScanData(p.row, p.other); err != nil {
			return nil, err
		}
		p.row.reason, paired[p.row.ID] = m.reason(), true
		m.replace(p.other)
	}
	if err := m.saveTwins(ctx, pairs, m.from.product); err != nil {
		return nil, err
	}
	if err := m.recordTwins(ctx, pairs, "matched", "removed"); err != nil {
		return nil, err
	}
	return before, m.finishProduct(ctx, findingIDs(moved), paired, m.reason())
}

// editedTwin is a twin whose findings change.
type editedTwin struct{ row, other *editedFinding }

func (m *findingMove) loadTwins(ctx context.Context, twins []twin) (pairs []editedTwin, err error) {
	var ids []int64
	for _, t := range twins {
		ids = append(ids, t.row.ID, t.other.ID)
	}
	if _, err := m.loadByIDs(ctx, ids...); err != nil {
		return nil, err
	}
	for _, t := range twins {
		if row, other := m.rows[t.row.ID], m.rows[t.other.ID]; row != nil && other != nil {
			pairs = append(pairs, editedTwin{row, other})
		}
	}
	return pairs, nil
}

// saveTwins gives the other findings a product, and writes both.
func (m *findingMove) saveTwins(ctx context.Context, pairs []editedTwin, product string) error {
	for part := range slices.Chunk(pairs, recastBatch) {
		others := make([]*ent.Finding, len(part))
		for n, p := range part {
			others[n] = p.other.Finding
		}
		if err := ingest.Recast(ctx, m.store, m.tx, others, product, m.redactionKey); err != nil {
			return err
		}
	}
	m.setStatuses()
	return m.save(ctx)
}

func (m *findingMove) recordTwins(ctx context.Context, pairs []editedTwin, kind, otherKind string) error {
	var rows, others []*editedFinding
	for _, p := range pairs {
		rows, others = append(rows, p.row), append(others, p.other)
	}
	if err := m.recordRows(ctx, kind, rows); err != nil {
		return err
	}
	return m.recordRows(ctx, otherKind, others)
}

// finishProduct records the findings that moved without a twin. It lets policies know what they did about the findings,
// ends held closes of them, and lets the ignored paths of the new product apply.
func (m *findingMove) finishProduct(ctx context.Context, moved []int64, paired map[int64]bool, reason string) error {
	alone := slices.DeleteFunc(slices.Clone(moved), func(id int64) bool { return paired[id] })
	if err := m.recordMoved(ctx, alone, reason); err != nil || len(moved) == 0 {
		return err
	}
	among, list := m.store.InIDs(moved)
	args := []any{m.to.product, m.deploymentID, m.projectID, m.from.product, m.deploymentID, m.projectID}
	err := m.store.Exec(ctx, m.tx, `INSERT INTO policy_acts (deployment_id, project_id, policy_id, action, issue_type, fingerprint, version, at)
		SELECT deployment_id, project_id, policy_id, action, CAST(? AS TEXT), fingerprint, version, at FROM policy_acts
		WHERE deployment_id = ? AND project_id = ? AND issue_type = ? AND fingerprint IN
			(SELECT fingerprint FROM findings WHERE +deployment_id = ? AND +project_id = ? AND id`+among+`)
		ON CONFLICT DO NOTHING`, append(args, list...)...)
	if err != nil {
		return err
	}
	if err := m.leaveHolds(ctx, m.from, moved); err != nil {
		return err
	}
	return m.jobs.Enqueue(ctx, pathignore.Apply{DeploymentID: m.deploymentID}, nil)
}

// undoProduct gives findings their former product. Twins take back what scans reported since. Code that was redacted
// stays redacted until the next upload.
func (m *findingMove) undoProduct(ctx context.Context, before *storev1.IdentityBefore, moved, replaced []*ent.Finding, reason string) error {
	there := map[int64]*ent.Finding{}
	for _, row := range slices.Concat(moved, replaced) {
		there[row.ID] = row
	}
	var twins []twin
	for n, kept := range before.GetKept() {
		row, other := there[kept.GetFindingId()], there[before.GetFindings()[n].GetFindingId()]
		if row != nil && other != nil {
			twins = append(twins, twin{row, other})
		}
	}
	pairs, err := m.loadTwins(ctx, twins)
	if err != nil {
		return err
	}
	state, paired := map[int64]string{}, map[int64]bool{}
	for _, kept := range before.GetKept() {
		state[kept.GetFindingId()] = kept.GetState()
	}
	for _, p := range pairs {
		if err := swapScanData(p.row, p.other); err != nil {
			return err
		}
		p.row.State, p.row.StateUpdatedAt = state[p.row.ID], m.at
		p.row.reason, p.other.reason, paired[p.row.ID] = reason, reason, true
	}
	if err := m.saveTwins(ctx, pairs, m.from.product); err != nil {
		return err
	}
	if err := m.recast(ctx, moved, m.to.product, before.GetColumns()); err != nil {
		return err
	}
	if err := m.recordTwins(ctx, pairs, "identity_undone", "identity_undone"); err != nil {
		return err
	}
	return m.finishProduct(ctx, findingIDs(moved), paired, reason)
}
