package findings

import (
	"context"
	"fmt"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
)

// undoMove gives the findings of a move that still exist their former categories or products, and states.
func (u *undoing) undoMove(ctx context.Context) error {
	if grant, ok := access.GrantFromContext(ctx); ok && !access.Permits(grant.Role, optionsv1.Permission_PERMISSION_MANAGE) {
		return apierr.PermissionDenied("only administrators may undo the %s %d", u.change.Kind, u.change.ID)
	}
	named, err := u.tx.Finding.Query().Where(finding.ID(u.change.FindingID)).Select(finding.FieldID, finding.FieldTool).Only(ctx)
	if ent.IsNotFound(err) {
		return noFinding(u.change.FindingID)
	}
	if err != nil {
		return err
	}
	b := u.before
	m := &findingMove{
		identityEdit: u.identityEdit, FindingIdentity: u.service, tool: named.Tool,
		from: analysisPart{b.GetToCategory(), b.GetToProduct()}, to: analysisPart{b.GetFromCategory(), b.GetFromProduct()},
	}
	was := make(map[int64]*storev1.FindingBefore, len(b.GetFindings()))
	for _, row := range b.GetFindings() {
		was[row.GetFindingId()] = row
	}
	moved, stay, err := m.part(ctx, m.from, func(id int64) bool { _, found := slices.BinarySearch(b.GetMoved(), id); return found })
	if err != nil {
		return err
	}
	replaced, others, err := m.part(ctx, m.to, func(id int64) bool { return was[id] != nil })
	if err != nil {
		return err
	}
	reason := fmt.Sprintf("%s %d undone", u.change.Kind, u.change.ID)
	if m.ofProduct() {
		return m.undoProduct(ctx, b, moved, replaced, reason)
	}
	for _, taken := range []struct{ back, by []*ent.Finding }{{moved, others}, {replaced, stay}} {
		if twins := sameNames(taken.back, taken.by); len(twins) > 0 {
			return apierr.FailedPrecondition("identity change %d cannot be undone: finding %d was reported since", u.change.ID, twins[0].ID)
		}
	}
	if err := m.exchange(ctx, findingIDs(moved), findingIDs(replaced), reason); err != nil {
		return err
	}
	rows, err := u.loadByIDs(ctx, findingIDs(replaced)...)
	if err != nil {
		return err
	}
	for _, row := range rows {
		row.reason = reason
		row.State, row.StateUpdatedAt = was[row.ID].GetState(), u.at
	}
	u.setStatuses()
	if err := u.save(ctx); err != nil {
		return err
	}
	return u.record(ctx, "identity_undone")
}

// part divides the findings of a part into the chosen ones and all others.
func (m *findingMove) part(ctx context.Context, of analysisPart, chosen func(id int64) bool) (in, out []*ent.Finding, err error) {
	rows, err := m.readPart(ctx, of)
	for _, row := range rows {
		if chosen(row.ID) {
			in = append(in, row)
		} else {
			out = append(out, row)
		}
	}
	return in, out, err
}

// sameNames returns the others that have the name of one of these on the same ref.
func sameNames(rows, others []*ent.Finding) []*ent.Finding {
	named := map[[2]string]bool{}
	for _, row := range rows {
		named[[2]string{row.Ref, row.Fingerprint}] = true
	}
	return slices.DeleteFunc(slices.Clone(others), func(other *ent.Finding) bool { return !named[[2]string{other.Ref, other.Fingerprint}] })
}
