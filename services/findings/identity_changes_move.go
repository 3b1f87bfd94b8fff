package findings

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scancoverage"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/byname"
)

const (
	// maxMoved and maxReplaced limit the findings of one move: it is one transaction.
	maxMoved, maxReplaced = 100_000, 10_000
	// movingCategory is the category of replaced findings while the others move. No upload can have it.
	movingCategory = "\x01moving"
)

// categoryMove moves the findings of a tool from one category to another.
type categoryMove struct {
	*identityEdit
	store          *store.Store
	tool, from, to string
}

// moveNumbers are the counters of a move.
type moveNumbers struct {
	// Decided are the moved findings with a decision, Replaced the removed findings of the other category.
	Moved    int64 `json:"m"`
	Decided  int64 `json:"d"`
	Replaced int64 `json:"o"`
}

// previewedMove is the content of the token of a move: what the caller was shown.
type previewedMove struct {
	previewTime
	Numbers moveNumbers `json:"v"`
}

// MoveCategory moves the findings of an analysis to another category.
func (s *FindingIdentity) MoveCategory(ctx context.Context, r *findingsv1.MoveCategoryRequest) (*findingsv1.MoveCategoryResponse, error) {
	if r.GetFromCategory() == r.GetToCategory() {
		return nil, apierr.InvalidArgument("toCategory", "toCategory must be another category than fromCategory, got %s for both", apierr.Quote(r.GetToCategory()))
	}
	request := proto.CloneOf(r)
	request.ValidateOnly, request.PreviewToken = false, ""
	var shown *previewedMove
	if r.GetPreviewToken() != "" {
		shown = &previewedMove{}
		if err := s.previews.open(ctx, request, r.GetPreviewToken(), time.Now(), shown); err != nil {
			return nil, err
		}
	}
	var n moveNumbers
	var change *ent.IdentityChange
	err := s.write(ctx, r.GetValidateOnly(), func(ctx context.Context, tx *ent.Tx) error {
		id, err := tx.Project.Query().Where(byname.Is(ctx, r.GetProject())).OnlyID(ctx)
		if ent.IsNotFound(err) {
			return apierr.NotFound("project %s not found", apierr.Quote(r.GetProject()))
		}
		if err != nil {
			return err
		}
		e, err := s.begin(ctx, tx, id, r.GetNote())
		if err != nil {
			return err
		}
		m := &categoryMove{identityEdit: e, store: s.store, tool: r.GetTool(), from: r.GetFromCategory(), to: r.GetToCategory()}
		n, change, err = m.run(ctx)
		if err == nil && shown != nil && shown.Numbers != n {
			return apierr.Conflict("the findings have changed since the preview: preview the move again")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &findingsv1.MoveCategoryResponse{MovedCount: int32(n.Moved), DecidedCount: int32(n.Decided), ReplacedCount: int32(n.Replaced)}
	if !r.GetValidateOnly() {
		out.Change = convertChange(change)
		return out, nil
	}
	out.PreviewToken, err = s.previews.seal(ctx, request, previewedMove{previewTime{store.Now()}, n})
	return out, err
}

// run makes the move. Findings of the other category that are the same on the same ref are replaced.
func (m *categoryMove) run(ctx context.Context) (n moveNumbers, change *ent.IdentityChange, err error) {
	moved, err := m.read(ctx, m.from)
	if err != nil {
		return n, nil, err
	}
	if len(moved) == 0 {
		return n, nil, apierr.NotFound("no findings of the tool %s with the category %s in this project", apierr.Quote(m.tool), apierr.Quote(m.from))
	}
	last, first, err := m.uses(ctx)
	if err != nil {
		return n, nil, err
	}
	if err := m.refuseIfBothAlive(last, first); err != nil {
		return n, nil, err
	}
	others, err := m.read(ctx, m.to)
	if err != nil {
		return n, nil, err
	}
	replaced, err := twinsOf(moved, others)
	if err != nil {
		return n, nil, err
	}
	if err := m.refuseIfOneCommit(ctx, last, first, moved, replaced); err != nil {
		return n, nil, err
	}
	if len(moved) > maxMoved || len(replaced) > maxReplaced {
		return n, nil, apierr.FailedPrecondition("%d findings would move and %d would be replaced, at most %d and %d at once", len(moved), len(replaced), maxMoved, maxReplaced)
	}
	n.Moved, n.Replaced = int64(len(moved)), int64(len(replaced))
	for _, row := range moved {
		if row.TriageState != lifecycle.Untriaged {
			n.Decided++
		}
	}
	if change, err = m.write(ctx, findingIDs(moved), findingIDs(replaced)); err != nil {
		return n, nil, fmt.Errorf("move findings to another category: %w", err)
	}
	return n, change, nil
}

// read reads what a move compares of the findings with a category, in the order of their ids.
func (m *categoryMove) read(ctx context.Context, category string) ([]*ent.Finding, error) {
	rows, err := m.tx.Finding.Query().Where(finding.ProjectID(m.projectID), finding.Tool(m.tool), finding.AnalysisCategory(category)).
		Select(finding.FieldID, finding.FieldRef, finding.FieldFingerprint, finding.FieldMatchKey, finding.FieldTriageState, finding.FieldTriageReason,
			finding.FieldMergedInto, finding.FieldState).All(ctx)
	slices.SortFunc(rows, func(a, b *ent.Finding) int { return int(a.ID - b.ID) })
	return rows, err
}

func findingIDs(rows []*ent.Finding) []int64 {
	ids := make([]int64, len(rows))
	for n, row := range rows {
		ids[n] = row.ID
	}
	return ids
}

// categoryUse is the use of a category by the scans of a ref. Min and Max are the first and the last of them.
type categoryUse struct {
	Ref      string `sql:"ref"`
	Category string `sql:"analysis_category"`
	Min      int64  `sql:"min"`
	Max      int64  `sql:"max"`
}

// uses returns the last use of the old category and the first use of the new one, on any ref. Without one, its scans
// are 0.
func (m *categoryMove) uses(ctx context.Context) (last, first categoryUse, err error) {
	var uses []categoryUse
	err = m.tx.ScanCoverage.Query().Where(scancoverage.ProjectID(m.projectID), scancoverage.Tool(m.tool),
		scancoverage.Or(scancoverage.AnalysisCategory(m.from), scancoverage.AnalysisCategory(m.to))).
		GroupBy(scancoverage.FieldRef, scancoverage.FieldAnalysisCategory).
		Aggregate(ent.Min(scancoverage.FieldScanID), ent.Max(scancoverage.FieldScanID)).Scan(ctx, &uses)
	for _, one := range uses {
		if one.Category == m.from && one.Max > last.Max {
			last = one
		}
		if one.Category == m.to && (first.Min == 0 || one.Min < first.Min) {
			first = one
		}
	}
	return last, first, err
}

// refuseIfBothAlive refuses a move if a scan of any ref used the old category at or after the first scan with the new
// one: the two are different analyses.
func (m *categoryMove) refuseIfBothAlive(last, first categoryUse) error {
	if first.Min == 0 || last.Max < first.Min {
		return nil
	}
	return apierr.FailedPrecondition("scan %d of %s used the category %s, although scan %d of %s used %s: they are two analyses",
		last.Max, last.Ref, apierr.Quote(m.from), first.Min, first.Ref, apierr.Quote(m.to))
}

// refuseIfOneCommit refuses a move if one commit was scanned with both categories, and they have no finding in common
// there: a renamed category has the same findings.
func (m *categoryMove) refuseIfOneCommit(ctx context.Context, last, first categoryUse, moved, replaced []*ent.Finding) error {
	if first.Min == 0 || last.Ref != first.Ref {
		return nil
	}
	there := func(row *ent.Finding) bool { return row.Ref == last.Ref }
	open := func(row *ent.Finding) bool { return there(row) && row.State == lifecycle.Unresolved }
	if slices.ContainsFunc(replaced, there) || !slices.ContainsFunc(moved, open) {
		return nil
	}
	commits, err := m.tx.Scan.Query().Where(scan.IDIn(last.Max, first.Min), scan.CommitNEQ("")).Select(scan.FieldCommit).Strings(ctx)
	if err != nil || len(commits) != 2 || commits[0] != commits[1] {
		return err
	}
	return apierr.FailedPrecondition("scans %d and %d of one commit used the categories %s and %s, and have no finding in common: they are two analyses",
		last.Max, first.Min, apierr.Quote(m.from), apierr.Quote(m.to))
}

// twinsOf returns the other findings that are the same as one of these on the same ref, by name or by their strongest
// evidence. A twin with another decision is an error: a person has to say which one stays.
func twinsOf(rows, others []*ent.Finding) (twins []*ent.Finding, err error) {
	type name struct{ ref, fingerprint string }
	type evidence struct {
		ref string
		key int64
	}
	named, alike := map[name]*ent.Finding{}, map[evidence]*ent.Finding{}
	for _, row := range rows {
		named[name{row.Ref, row.Fingerprint}] = row
		if row.MatchKey != nil && row.MergedInto == nil {
			alike[evidence{row.Ref, *row.MatchKey}] = row
		}
	}
	for _, other := range others {
		row := named[name{other.Ref, other.Fingerprint}]
		if row == nil && other.MatchKey != nil && other.MergedInto == nil {
			row = alike[evidence{other.Ref, *other.MatchKey}]
		}
		if row == nil {
			continue
		}
		if other.TriageState != lifecycle.Untriaged && (other.TriageState != row.TriageState || !same(other.TriageReason, row.TriageReason)) {
			return nil, apierr.FailedPrecondition("findings %d and %d are the same, and have different decisions: decide the same about both first", row.ID, other.ID)
		}
		twins = append(twins, other)
	}
	return twins, nil
}

// write removes the replaced findings and exchanges the categories of both.
func (m *categoryMove) write(ctx context.Context, moved, replaced []int64) (*ent.IdentityChange, error) {
	rows, err := m.loadByIDs(ctx, replaced...)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		row.reason = fmt.Sprintf("replaced by a finding with the category %q", m.from)
		if row.State != lifecycle.Removed {
			row.State, row.StateUpdatedAt = lifecycle.Removed, m.at
		}
	}
	m.setStatuses()
	before := m.before(nil)
	before.Moved, before.FromCategory, before.ToCategory = moved, m.from, m.to
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(before)
	if err != nil {
		return nil, err
	}
	if err := m.save(ctx); err != nil {
		return nil, err
	}
	if err := m.record(ctx, "removed"); err != nil {
		return nil, err
	}
	if err := m.exchange(ctx, moved, replaced, fmt.Sprintf("category %q instead of %q", m.to, m.from)); err != nil {
		return nil, err
	}
	m.note = m.words() + m.note
	return m.recordChange(ctx, changeMove, moved[0], 0, encoded)
}

// words begins the note of the change.
func (m *categoryMove) words() string {
	text := fmt.Sprintf("%s: %q to %q", m.tool, m.from, m.to)
	if m.note != "" {
		text += ". "
	}
	return text
}

// exchange gives the moved findings the new category, and the replaced ones the old category. No two findings of a ref
// may have the same name and category at any time.
func (m *categoryMove) exchange(ctx context.Context, moved, replaced []int64, reason string) error {
	for _, step := range []struct {
		category string
		ids      []int64
	}{{movingCategory, replaced}, {m.to, moved}, {m.from, replaced}} {
		if len(step.ids) == 0 {
			continue
		}
		among, list := m.store.InIDs(step.ids)
		err := m.store.Exec(ctx, m.tx, `UPDATE findings SET analysis_category = ? WHERE +deployment_id = ? AND +project_id = ? AND id`+among,
			append([]any{step.category, m.deploymentID, m.projectID}, list...)...)
		if err != nil {
			return err
		}
	}
	among, list := m.store.InIDs(moved)
	return m.store.Exec(ctx, m.tx, `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, at)
		SELECT deployment_id, id, 'matched', status, status, ?, ?, ?, ?, ? FROM findings WHERE +deployment_id = ? AND +project_id = ? AND id`+among,
		append([]any{reason, m.note, m.actorKind, m.actorID, m.at, m.deploymentID, m.projectID}, list...)...)
}

// undoMove gives the findings of a move that still exist their former categories and states.
func (u *undoing) undoMove(ctx context.Context) error {
	named, err := u.tx.Finding.Query().Where(finding.ID(u.change.FindingID)).Select(finding.FieldID, finding.FieldTool).Only(ctx)
	if ent.IsNotFound(err) {
		return noFinding(u.change.FindingID)
	}
	if err != nil {
		return err
	}
	m := &categoryMove{identityEdit: u.identityEdit, store: u.store, tool: named.Tool, from: u.before.GetToCategory(), to: u.before.GetFromCategory()}
	was := make(map[int64]*storev1.FindingBefore, len(u.before.GetFindings()))
	for _, row := range u.before.GetFindings() {
		was[row.GetFindingId()] = row
	}
	moved, stay, err := m.part(ctx, m.from, func(id int64) bool { _, found := slices.BinarySearch(u.before.GetMoved(), id); return found })
	if err != nil {
		return err
	}
	replaced, others, err := m.part(ctx, m.to, func(id int64) bool { return was[id] != nil })
	if err != nil {
		return err
	}
	for _, taken := range []struct{ back, by []*ent.Finding }{{moved, others}, {replaced, stay}} {
		if twins := sameNames(taken.back, taken.by); len(twins) > 0 {
			return apierr.FailedPrecondition("identity change %d cannot be undone: finding %d was reported since", u.change.ID, twins[0].ID)
		}
	}
	if err := m.exchange(ctx, findingIDs(moved), findingIDs(replaced), fmt.Sprintf("%s %d undone", u.change.Kind, u.change.ID)); err != nil {
		return err
	}
	rows, err := u.loadByIDs(ctx, findingIDs(replaced)...)
	if err != nil {
		return err
	}
	for _, row := range rows {
		row.reason = fmt.Sprintf("%s %d undone", u.change.Kind, u.change.ID)
		row.State, row.StateUpdatedAt = was[row.ID].GetState(), u.at
	}
	u.setStatuses()
	if err := u.save(ctx); err != nil {
		return err
	}
	return u.record(ctx, "identity_undone")
}

// part divides the findings of a category into the chosen ones and all others.
func (m *categoryMove) part(ctx context.Context, category string, chosen func(id int64) bool) (in, out []*ent.Finding, err error) {
	rows, err := m.read(ctx, category)
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
