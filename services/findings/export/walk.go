package export

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/internal/store"
)

// idsAtOnce is how many ids the filter selects at once. Filters choose indexes in any order, so each selection may read
// all findings: many small ones would take a time that grows with the square of the findings.
const idsAtOnce = 250_000

// group is an analysis: what one tool reports about one ref of a project.
type group struct {
	ProjectID int64  `sql:"project_id"`
	Ref       string `sql:"ref"`
	Tool      string `sql:"tool"`
	Category  string `sql:"analysis_category"`
}

// where selects the findings of the group.
func (g *group) where() []predicate.Finding {
	return []predicate.Finding{finding.ProjectID(g.ProjectID), finding.Ref(g.Ref), finding.Tool(g.Tool), finding.AnalysisCategory(g.Category)}
}

// groups are the analyses of the selected findings, in a stable order.
func groups(ctx context.Context, db *ent.Client, where []predicate.Finding) ([]*group, error) {
	var list []*group
	err := db.Finding.Query().Where(where...).Unique(true).
		Select(finding.FieldProjectID, finding.FieldRef, finding.FieldTool, finding.FieldAnalysisCategory).Scan(ctx, &list)
	if err != nil {
		return nil, fmt.Errorf("read analyses: %w", err)
	}
	slices.SortFunc(list, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.ProjectID, b.ProjectID), cmp.Compare(a.Ref, b.Ref), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Category, b.Category))
	})
	return list, nil
}

// walk calls each with the ids of the selected findings, in order, rowsAtOnce at a time. A finding is selected at most
// once, also while findings change.
func walk(ctx context.Context, st *store.Store, where func(context.Context) (context.Context, []predicate.Finding, error), each func(ctx context.Context, ids []int64) error) error {
	for last := int64(0); ; {
		inside, conditions, err := where(ctx)
		if err != nil {
			return err
		}
		ids, err := st.Reader.Finding.Query().Where(conditions...).Where(finding.IDGT(last)).Order(ent.Asc(finding.FieldID)).Limit(idsAtOnce).IDs(inside)
		if err != nil {
			return fmt.Errorf("select findings: %w", err)
		}
		for some := range slices.Chunk(ids, rowsAtOnce) {
			if err := each(ctx, some); err != nil {
				return err
			}
		}
		if len(ids) < idsAtOnce {
			return nil
		}
		last = ids[len(ids)-1]
	}
}
