package ignores

import (
	"context"
	"maps"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	policy "github.com/palisade/palisade/services/policies/pathignore"
)

// PreviewDeploymentProductIgnores counts what an update would change.
func (s *Ignores) PreviewDeploymentProductIgnores(
	ctx context.Context, r *policiesv1.PreviewDeploymentProductIgnoresRequest,
) (*policiesv1.PreviewDeploymentProductIgnoresResponse, error) {
	given, err := check(r.GetProductIgnores())
	if err != nil {
		return nil, err
	}
	counts, err := filesOf(ctx, s.store.Reader, slices.Sorted(maps.Keys(given)))
	if err != nil {
		return nil, err
	}
	matchers, err := matchersOf(ctx, s.store.Reader, given, rowsOf(counts))
	if err != nil {
		return nil, err
	}
	found := map[string]*tally{}
	for _, f := range counts {
		t := found[f.IssueType]
		if t == nil {
			t = &tally{hides: map[string]int32{}, keeps: map[string]int32{}}
			found[f.IssueType] = t
		}
		t.add(f, matchers[f.ProjectID])
	}
	response := &policiesv1.PreviewDeploymentProductIgnoresResponse{}
	for _, list := range r.GetProductIgnores() {
		word := wordOf(list.GetProduct())
		response.Products = append(response.Products, found[word].preview(list.GetProduct(), given[word]))
	}
	return response, nil
}

// fileCount is the number of findings of a product in a file that are open, or that a policy ignores.
type fileCount struct {
	ProjectID int64  `sql:"project_id"`
	IssueType string `sql:"issue_type"`
	FilePath  string `sql:"file_path"`
	Open      int32  `sql:"open"`
	Ignored   int32  `sql:"ignored"`
}

// filesOf counts the findings of the files of some products, in one pass. Decisions of people stay, so what they have
// decided is not counted.
func filesOf(ctx context.Context, db *ent.Client, products []string) (files []fileCount, err error) {
	err = db.Finding.Query().Where(
		finding.IssueTypeIn(products...), finding.FilePathNotNil(), finding.MergedIntoIsNil(), finding.TriageState(lifecycle.Untriaged),
		finding.Or(finding.State(lifecycle.Unresolved), finding.And(finding.State(lifecycle.Muted), finding.IgnoredByPatternNotNil())),
	).Modify(func(s *entsql.Selector) {
		s.Select(s.C(finding.FieldProjectID), s.C(finding.FieldIssueType), s.C(finding.FieldFilePath),
			"SUM(CASE WHEN "+s.C(finding.FieldIgnoredByPattern)+" IS NULL THEN 1 ELSE 0 END) AS open",
			"SUM(CASE WHEN "+s.C(finding.FieldIgnoredByPattern)+" IS NULL THEN 0 ELSE 1 END) AS ignored")
		s.GroupBy(s.C(finding.FieldProjectID), s.C(finding.FieldIssueType), s.C(finding.FieldFilePath))
	}).Scan(ctx, &files)
	return files, err
}

// rowsOf names the projects of the files.
func rowsOf(files []fileCount) (rows []row) {
	for _, f := range files {
		if len(rows) == 0 || rows[len(rows)-1].ProjectID != f.ProjectID {
			rows = append(rows, row{ProjectID: f.ProjectID})
		}
	}
	return rows
}

// tally counts the changes of a product.
type tally struct {
	hidden, returned int32
	hides, keeps     map[string]int32 // by pattern
}

func (t *tally) add(f fileCount, m *policy.Matcher) {
	pattern, ignored := m.Match(f.IssueType, f.FilePath)
	if !ignored {
		t.returned += f.Ignored
		return
	}
	t.hidden += f.Open
	t.hides[pattern] += f.Open
	t.keeps[pattern] += f.Ignored
}

// preview is the answer about a product; t is nil if it has no such findings.
func (t *tally) preview(product scansv1.Product, patterns []string) *policiesv1.ProductIgnoresPreview {
	if t == nil {
		t = &tally{}
	}
	out := &policiesv1.ProductIgnoresPreview{Product: product, WouldIgnore: t.hidden, WouldReturn: t.returned}
	for _, pattern := range patterns {
		out.Patterns = append(out.Patterns, &policiesv1.IgnorePatternPreview{
			Pattern: pattern, WouldIgnore: t.hides[pattern], KeepsIgnored: t.keeps[pattern],
		})
	}
	return out
}
