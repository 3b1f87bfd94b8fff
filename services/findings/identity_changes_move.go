package findings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scancoverage"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lastscan"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/byname"
	"github.com/palisade/palisade/services/scans/ingest"
)

const (
	// maxMoved and maxReplaced limit the findings of one move: it is one transaction.
	maxMoved, maxReplaced = 100_000, 10_000
	// movingCategory is the category of replaced findings while the others move. No upload can have it.
	movingCategory = "\x01moving"
)

// analysisPart is what a move takes findings from, or gives them to: a category, or a product in a category.
type analysisPart struct{ category, product string }

// String says in errors what the part is: the word that the two parts of a move differ in.
func (p analysisPart) String() string {
	if p.product != "" {
		return "product " + apierr.Quote(p.product)
	}
	return "category " + apierr.Quote(p.category)
}

// name is the name of the category or the product.
func (p analysisPart) name() string { return cmp.Or(p.product, p.category) }

// where selects the findings.
func (p analysisPart) where() []predicate.Finding {
	if p.product != "" {
		return []predicate.Finding{finding.AnalysisCategory(p.category), finding.IssueType(p.product)}
	}
	return []predicate.Finding{finding.AnalysisCategory(p.category)}
}

// findingMove moves the findings of a tool from one category or product to another.
type findingMove struct {
	*identityEdit
	*FindingIdentity
	tool     string
	from, to analysisPart
	// columns has the values of moved findings in columns that the other product does not have. lastOf is the last scan
	// of each ref that used the old part.
	columns []*storev1.FindingColumns
	lastOf  map[string]int64
}

// ofProduct reports whether the product changes, and not the category.
func (m *findingMove) ofProduct() bool { return m.from.product != "" }

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

// MoveCategory moves the findings of an analysis to another category or product.
func (s *FindingIdentity) MoveCategory(ctx context.Context, r *findingsv1.MoveCategoryRequest) (*findingsv1.MoveCategoryResponse, error) {
	if err := checkMove(r); err != nil {
		return nil, err
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
		m := &findingMove{
			identityEdit: e, FindingIdentity: s, tool: r.GetTool(),
			from: analysisPart{r.GetFromCategory(), r.GetFromProduct()}, to: analysisPart{r.GetToCategory(), r.GetToProduct()},
		}
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

// checkMove refuses requests that do not say what moves where.
func checkMove(r *findingsv1.MoveCategoryRequest) error {
	from, to := r.GetFromProduct(), r.GetToProduct()
	if from == "" && to == "" {
		if r.GetFromCategory() == r.GetToCategory() {
			return apierr.InvalidArgument("toCategory", "toCategory must be another category than fromCategory, got %s for both", apierr.Quote(r.GetToCategory()))
		}
		return nil
	}
	for _, one := range []struct{ field, product string }{{"fromProduct", from}, {"toProduct", to}} {
		if !slices.Contains(vocabulary.Products, one.product) {
			return apierr.InvalidArgument(one.field, "%s must be one of %s, got %s", one.field, strings.Join(vocabulary.Products, ", "), apierr.Quote(one.product))
		}
	}
	if from == to {
		return apierr.InvalidArgument("toProduct", "toProduct must be another product than fromProduct, got %s for both", apierr.Quote(to))
	}
	if r.GetFromCategory() != r.GetToCategory() {
		return apierr.InvalidArgument("toCategory", "toCategory must be fromCategory, %s, if the product changes, got %s: move the category and the product one after the other",
			apierr.Quote(r.GetFromCategory()), apierr.Quote(r.GetToCategory()))
	}
	return nil
}

// run makes the move. Findings of the other part that are the same on the same ref are replaced.
func (m *findingMove) run(ctx context.Context) (n moveNumbers, change *ent.IdentityChange, err error) {
	moved, err := m.readPart(ctx, m.from)
	if err != nil {
		return n, nil, err
	}
	if len(moved) == 0 {
		return n, nil, apierr.NotFound("no findings of the tool %s with the %s in this project", apierr.Quote(m.tool), m.from)
	}
	use, err := m.uses(ctx)
	if err != nil {
		return n, nil, err
	}
	if err := m.refuseIfBothAlive(use, moved); err != nil {
		return n, nil, err
	}
	others, err := m.readPart(ctx, m.to)
	if err != nil {
		return n, nil, err
	}
	n.Moved = int64(len(moved))
	for _, row := range moved {
		if row.TriageState != lifecycle.Untriaged {
			n.Decided++
		}
	}
	if n.Moved > maxMoved {
		return n, nil, tooMany(n)
	}
	m.lastOf = use.lastOf
	twins, err := m.twins(ctx, moved, others)
	if err != nil {
		return n, nil, err
	}
	if err := m.refuseIfOneCommit(ctx, use, moved, twins); err != nil {
		return n, nil, err
	}
	if n.Replaced = int64(len(twins)); n.Replaced > maxReplaced {
		return n, nil, tooMany(n)
	}
	if change, err = m.write(ctx, moved, twins); err != nil {
		return n, nil, fmt.Errorf("move findings from the %s to the %s: %w", m.from, m.to, err)
	}
	return n, change, nil
}

func tooMany(n moveNumbers) error {
	return apierr.FailedPrecondition("%d findings would move and %d would be replaced, at most %d and %d at once", n.Moved, n.Replaced, maxMoved, maxReplaced)
}

// readPart reads what a move compares of the findings of a part, in the order of their ids.
func (m *findingMove) readPart(ctx context.Context, part analysisPart) ([]*ent.Finding, error) {
	query := m.tx.Finding.Query().Where(finding.ProjectID(m.projectID), finding.Tool(m.tool)).Where(part.where()...).
		Select(finding.FieldID, finding.FieldRef, finding.FieldFingerprint, finding.FieldMatchKey, finding.FieldTriageState, finding.FieldTriageReason,
			finding.FieldMergedInto, finding.FieldState)
	if m.ofProduct() {
		query.Select(finding.FieldEvidence, finding.FieldFirstSeenScanID, finding.FieldLastSeenScanID)
	}
	rows, err := query.All(ctx)
	slices.SortFunc(rows, func(a, b *ent.Finding) int { return cmp.Compare(a.ID, b.ID) })
	return rows, err
}

func findingIDs(rows []*ent.Finding) []int64 {
	ids := make([]int64, len(rows))
	for n, row := range rows {
		ids[n] = row.ID
	}
	return ids
}

// scanUse is a use of a part by a scan of a ref.
type scanUse struct {
	ref  string
	scan int64
}

// partUse is how scans used the two parts of a move. Without a use, the scan is 0.
type partUse struct {
	// last is the last use of the old part on any ref, lastOf on each ref. first is the first use of the new part.
	last, first scanUse
	lastOf      map[string]int64
}

// uses reads which scans used the two parts.
func (m *findingMove) uses(ctx context.Context) (use partUse, err error) {
	var rows []struct {
		Ref      string `sql:"ref"`
		Category string `sql:"analysis_category"`
		Products *int32 `sql:"products"`
		Min      int64  `sql:"min"`
		Max      int64  `sql:"max"`
	}
	err = m.tx.ScanCoverage.Query().Where(scancoverage.ProjectID(m.projectID), scancoverage.Tool(m.tool),
		scancoverage.Or(scancoverage.AnalysisCategory(m.from.category), scancoverage.AnalysisCategory(m.to.category))).
		GroupBy(scancoverage.FieldRef, scancoverage.FieldAnalysisCategory, scancoverage.FieldProducts).
		Aggregate(ent.Min(scancoverage.FieldScanID), ent.Max(scancoverage.FieldScanID)).Scan(ctx, &rows)
	use.lastOf = map[string]int64{}
	for _, row := range rows {
		if m.from.has(row.Category, row.Products) {
			use.lastOf[row.Ref] = max(use.lastOf[row.Ref], row.Max)
			if row.Max > use.last.scan {
				use.last = scanUse{row.Ref, row.Max}
			}
		}
		if m.to.has(row.Category, row.Products) && (use.first.scan == 0 || row.Min < use.first.scan) {
			use.first = scanUse{row.Ref, row.Min}
		}
	}
	return use, err
}

// has reports whether a scan with these products used the part. Old scans do not tell their products.
func (p analysisPart) has(category string, products *int32) bool {
	return category == p.category && (p.product == "" || products != nil && *products&lastscan.Products([]string{p.product}) != 0)
}

// refuseIfBothAlive refuses a move if a scan of any ref used the old part at or after the first scan with the new one:
// the two are different analyses. Reports of a product that had none of its findings any more do not count.
func (m *findingMove) refuseIfBothAlive(use partUse, moved []*ent.Finding) error {
	if use.first.scan == 0 || use.last.scan < use.first.scan {
		return nil
	}
	verb := "used"
	if m.ofProduct() {
		n := slices.IndexFunc(moved, func(row *ent.Finding) bool { return reportedSince(row, use) })
		if n < 0 {
			return nil
		}
		use.last, verb = scanUse{moved[n].Ref, use.lastOf[moved[n].Ref]}, "reported findings of"
	}
	return apierr.FailedPrecondition("scan %d of %s %s the %s, although scan %d of %s used %s: they are two analyses",
		use.last.scan, use.last.ref, verb, m.from, use.first.scan, use.first.ref, apierr.Quote(m.to.name()))
}

// reportedSince reports whether a scan that came after the first use of the new part reported a finding.
func reportedSince(row *ent.Finding, use partUse) bool {
	switch {
	case use.lastOf[row.Ref] < use.first.scan:
		return false
	case row.LastSeenScanID != nil:
		return *row.LastSeenScanID >= use.first.scan
	}
	return lifecycle.Seen(row.State) || row.FirstSeenScanID >= use.first.scan
}

// refuseIfOneCommit refuses a move if one commit was scanned with both parts, and they have no finding in common there:
// a renamed category has the same findings.
func (m *findingMove) refuseIfOneCommit(ctx context.Context, use partUse, moved []*ent.Finding, twins []twin) error {
	if use.first.scan == 0 || use.last.ref != use.first.ref {
		return nil
	}
	open := func(row *ent.Finding) bool { return row.Ref == use.last.ref && row.State == lifecycle.Unresolved }
	if slices.ContainsFunc(twins, func(t twin) bool { return t.other.Ref == use.last.ref }) || !slices.ContainsFunc(moved, open) {
		return nil
	}
	commits, err := m.tx.Scan.Query().Where(scan.IDIn(use.last.scan, use.first.scan), scan.CommitNEQ("")).Select(scan.FieldCommit).Strings(ctx)
	if err != nil || len(commits) != 2 || commits[0] != commits[1] {
		return err
	}
	return apierr.FailedPrecondition("scans %d and %d of one commit used the %s and %s, and have no finding in common: they are two analyses",
		use.last.scan, use.first.scan, m.from, apierr.Quote(m.to.name()))
}

// twin is a finding that moves, and the finding of the other part that is the same on the same ref.
type twin struct{ row, other *ent.Finding }

// twins finds the twins. A twin with another decision is an error: a person has to say which one stays.
func (m *findingMove) twins(ctx context.Context, moved, others []*ent.Finding) (twins []twin, err error) {
	if !m.ofProduct() {
		twins = namesakes(moved, others)
	} else if twins, err = m.recastAlike(ctx, moved, others); err != nil {
		return nil, err
	}
	for _, t := range twins {
		if t.other.TriageState != lifecycle.Untriaged && (t.other.TriageState != t.row.TriageState || !same(t.other.TriageReason, t.row.TriageReason)) {
			return nil, apierr.FailedPrecondition("findings %d and %d are the same, and have different decisions: decide the same about both first", t.row.ID, t.other.ID)
		}
	}
	return twins, nil
}

// namesakes pairs the findings of two categories by name or by their strongest evidence.
func namesakes(rows, others []*ent.Finding) (twins []twin) {
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
		if row != nil {
			twins = append(twins, twin{row, other})
		}
	}
	return twins
}

// write writes the move and records it.
func (m *findingMove) write(ctx context.Context, moved []*ent.Finding, twins []twin) (change *ent.IdentityChange, err error) {
	var before *storev1.IdentityBefore
	if m.ofProduct() {
		before, err = m.writeProduct(ctx, moved, twins)
	} else {
		before, err = m.writeCategory(ctx, findingIDs(moved), twins)
	}
	if err != nil {
		return nil, err
	}
	before.Moved, before.FromCategory, before.ToCategory = findingIDs(moved), m.from.category, m.to.category
	before.FromProduct, before.ToProduct = m.from.product, m.to.product
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(before)
	if err != nil {
		return nil, err
	}
	m.note = m.words() + m.note
	return m.recordChange(ctx, changeMove, moved[0].ID, 0, encoded)
}

// writeCategory removes the replaced findings and exchanges the categories of both.
func (m *findingMove) writeCategory(ctx context.Context, moved []int64, twins []twin) (*storev1.IdentityBefore, error) {
	var replaced []int64
	for _, t := range twins {
		replaced = append(replaced, t.other.ID)
	}
	rows, err := m.loadByIDs(ctx, replaced...)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		m.replace(row)
	}
	m.setStatuses()
	before := m.before(nil)
	if err := m.save(ctx); err != nil {
		return nil, err
	}
	if err := m.record(ctx, "removed"); err != nil {
		return nil, err
	}
	return before, m.exchange(ctx, moved, replaced, m.reason())
}

// replace removes a twin of a finding that moves.
func (m *findingMove) replace(row *editedFinding) {
	row.reason = fmt.Sprintf("replaced by a finding with the %s", m.from)
	if row.State != lifecycle.Removed {
		row.State, row.StateUpdatedAt = lifecycle.Removed, m.at
	}
}

// reason is the reason in the events of moved findings.
func (m *findingMove) reason() string { return fmt.Sprintf("%s instead of %q", m.to, m.from.name()) }

// words begins the note of the change.
func (m *findingMove) words() string {
	text := fmt.Sprintf("%s: %q to %q", m.tool, m.from.name(), m.to.name())
	if m.note != "" {
		text += ". "
	}
	return text
}

// exchange gives the moved findings the new category, and the replaced ones the old category. No two findings of a ref
// may have the same name and category at any time.
func (m *findingMove) exchange(ctx context.Context, moved, replaced []int64, reason string) error {
	for _, step := range []struct {
		category string
		ids      []int64
	}{{movingCategory, replaced}, {m.to.category, moved}, {m.from.category, replaced}} {
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
	if err := errors.Join(m.leaveHolds(ctx, m.from, moved), m.leaveHolds(ctx, m.to, replaced)); err != nil {
		return err
	}
	return m.recordMoved(ctx, moved, reason)
}

// leaveHolds takes findings out of the held closes of the part that they had: only scans of their new part say whether
// they are there.
func (m *findingMove) leaveHolds(ctx context.Context, had analysisPart, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	by := ingest.HoldDecision{ActorKind: m.actorKind, ActorID: m.actorID}
	return ingest.LeaveHolds(ctx, m.tx, m.projectID, ingest.Analysis{Tool: m.tool, Category: had.category}, slices.Sorted(slices.Values(ids)), by)
}

// recordMoved writes an event for each moved finding whose status did not change.
func (m *findingMove) recordMoved(ctx context.Context, moved []int64, reason string) error {
	if len(moved) == 0 {
		return nil
	}
	among, list := m.store.InIDs(moved)
	return m.store.Exec(ctx, m.tx, `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, at)
		SELECT deployment_id, id, 'matched', status, status, ?, ?, ?, ?, ? FROM findings WHERE +deployment_id = ? AND +project_id = ? AND id`+among,
		append([]any{reason, m.note, m.actorKind, m.actorID, m.at, m.deploymentID, m.projectID}, list...)...)
}
