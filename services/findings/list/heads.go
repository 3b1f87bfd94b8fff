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
	"github.com/palisade/palisade/services/internal/store"
)

// mostHeads is how many projects a page is put together from at most. Callers who see more see most of what is new:
// their list is read in its order until the page is full.
const mostHeads = 500

// heads are the projects that a caller sees who is limited to teams, when a page is best put together from the newest
// findings of each: a list in its order may have a million of others first. Beside a condition that leads an index of
// its own that one is read.
func (f *Filter) heads(ctx context.Context, db *ent.Client, list []condition) ([]int64, error) {
	if _, limited := tenant.Teams(ctx); !limited || len(f.RepositoryIDs) > 0 {
		return nil, nil
	}
	along := []string{finding.FieldProjectID, finding.FieldStatus, finding.FieldSeverity, finding.FieldRef}
	for _, c := range list {
		if c.values > 0 && !slices.Contains(along, c.column) {
			return nil, nil
		}
	}
	ids, known := projectsOf(list)
	if !known {
		var err error
		if ids, err = db.Project.Query().Limit(mostHeads + 1).IDs(ctx); err != nil {
			return nil, err
		}
	}
	if len(ids) < 2 || len(ids) > mostHeads {
		return nil, nil
	}
	return ids, nil
}

// projectsOf are the projects that a filter chooses.
func projectsOf(list []condition) ([]int64, bool) {
	for _, c := range list {
		if ids, ok := c.named.([]int64); ok && c.column == finding.FieldProjectID {
			return ids, true
		}
	}
	return nil, false
}

// ofHeads are the conditions of a list whose pages are put together from projects. All but those on its order keep
// SQLite from other indexes than the one by project.
func (f *Filter) ofHeads(list []condition) []predicate.Finding {
	where := []predicate.Finding{finding.DeploymentID(f.DeploymentID), finding.IssueType(f.IssueType)}
	for _, c := range list {
		switch c.column {
		case finding.FieldProjectID:
		case finding.FieldRelevantSince:
			where = append(where, c.where)
		default:
			where = append(where, store.Unindexed(c.where))
		}
	}
	return where
}

// newestOfEach chooses so many of the newest findings of some projects that meet the conditions, and looks at no more
// than so many of each project, or twice as many.
func newestOfEach(projects []int64, rows int, where []predicate.Finding) predicate.Finding {
	return func(s *entsql.Selector) {
		of := func(project string) *entsql.Selector {
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
				each := of("project")
				each.Select(each.C(finding.FieldID), each.C(finding.FieldRelevantSince)).Limit(rows)
				store.IDRows(b, "project", projects)
				b.WriteString(" CROSS JOIN LATERAL (").Join(each).WriteString(") AS newest")
			} else {
				// SQLite has no LATERAL. No row of the page is older than the last one of a page of any of the projects.
				last := of("one")
				last.Select(last.C(finding.FieldRelevantSince)).Offset(rows - 1).Limit(1)
				b.WriteString("(SELECT findings.id, findings.relevant_since FROM ")
				store.IDRows(b, "project", projects)
				b.WriteString(" CROSS JOIN findings WHERE ").Join(of("project").P())
				b.WriteString(" AND findings.relevant_since >= (SELECT COALESCE(MAX((").Join(last)
				b.WriteString(")), -9223372036854775808) FROM ")
				store.IDRows(b, "one", projects)
				b.WriteString(")) AS newest")
			}
			b.WriteString(" ORDER BY newest.relevant_since DESC, newest.id DESC LIMIT ").Arg(rows).WriteByte(')')
		}))
	}
}
