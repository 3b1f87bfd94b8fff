package list

import (
	"context"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/internal/store"
)

// maxTopNProjects is the largest number of projects for which a page is merged per project. Callers with more projects
// see most new findings anyway, so scanning the whole list is cheaper.
const maxTopNProjects = 500

// topNProjects returns the projects for which the page is merged from the newest findings of each, or nil to read the
// list in its order. The merge serves callers limited to teams: in the whole list, a million findings of other projects
// may come first. A condition with a selective index of its own is cheaper than the merge.
func (f *Filter) topNProjects(ctx context.Context, db *ent.Client, list []issuefilter.Condition) ([]int64, error) {
	if _, limited := tenant.Teams(ctx); !limited || len(f.RepositoryIDs) > 0 {
		return nil, nil
	}
	unselective := []string{finding.FieldProjectID, finding.FieldStatus, finding.FieldSeverity, finding.FieldRef}
	for _, c := range list {
		if c.NumValues > 0 && !slices.Contains(unselective, c.Column) {
			return nil, nil
		}
	}
	ids, known := projectsOf(list)
	if !known {
		var err error
		if ids, err = db.Project.Query().Limit(maxTopNProjects + 1).IDs(ctx); err != nil {
			return nil, err
		}
	}
	if len(ids) < 2 || len(ids) > maxTopNProjects {
		return nil, nil
	}
	return ids, nil
}

// projectsOf returns the projects that the conditions name, and whether they name any.
func projectsOf(list []issuefilter.Condition) ([]int64, bool) {
	for _, c := range list {
		if ids, ok := c.Values.([]int64); ok && c.Column == finding.FieldProjectID {
			return ids, true
		}
	}
	return nil, false
}

// topNPredicates returns the conditions for topNPerProject. All conditions except the one on the list's order are
// hidden from SQLite's planner, so that it uses the index by project.
func (f *Filter) topNPredicates(list []issuefilter.Condition) []predicate.Finding {
	where := []predicate.Finding{finding.DeploymentID(f.DeploymentID), finding.IssueType(f.IssueType)}
	for _, c := range list {
		switch c.Column {
		case finding.FieldProjectID:
		case finding.FieldRelevantSince:
			where = append(where, c.Where)
		default:
			where = append(where, store.Unindexed(c.Where))
		}
	}
	return where
}

// topNPerProject selects the newest findings of the projects that satisfy the conditions, up to the given number of
// rows. It reads at most twice that number from each project.
func topNPerProject(projects []int64, rows int, where []predicate.Finding) predicate.Finding {
	return func(s *entsql.Selector) {
		ofProject := func(project string) *entsql.Selector {
			each := entsql.Dialect(s.Dialect()).Select().From(entsql.Table(finding.Table))
			each.Where(entsql.ExprP(each.C(finding.FieldProjectID) + " = " + project + ".id"))
			for _, p := range where {
				p(each)
			}
			NewestFirst(each)
			return each
		}
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString(s.C(finding.FieldID) + " IN (SELECT newest.id FROM ")
			if s.Dialect() == dialect.Postgres {
				each := ofProject("project")
				each.Select(each.C(finding.FieldID), each.C(finding.FieldRelevantSince)).Limit(rows)
				store.IDRows(b, "project", projects)
				b.WriteString(" CROSS JOIN LATERAL (").Join(each).WriteString(") AS newest")
			} else {
				// SQLite has no LATERAL. The last row of each project's own page is a bound: no row of the result is older
				// than the newest of these last rows.
				last := ofProject("one")
				last.Select(last.C(finding.FieldRelevantSince)).Offset(rows - 1).Limit(1)
				b.WriteString("(SELECT findings.id, findings.relevant_since FROM ")
				store.IDRows(b, "project", projects)
				b.WriteString(" CROSS JOIN findings WHERE ").Join(ofProject("project").P())
				b.WriteString(" AND findings.relevant_since >= (SELECT COALESCE(MAX((").Join(last)
				b.WriteString(")), -9223372036854775808) FROM ")
				store.IDRows(b, "one", projects)
				b.WriteString(")) AS newest")
			}
			b.WriteString(" ORDER BY newest.relevant_since DESC, newest.id DESC LIMIT ").Arg(rows).WriteByte(')')
		}))
	}
}
