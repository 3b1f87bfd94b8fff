package list

import (
	"cmp"
	"context"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/findings/issuefilter"
)

// maxMerged is the largest number of values that are merged. PostgreSQL's planner plans each of them separately.
const maxMerged = 20

// merged returns the conditions in a form for which PostgreSQL reads the findings of each value along the index of the
// column, and merges them in order. A page then costs its own rows and one row for each value. Otherwise PostgreSQL
// sorts all matching findings, or scans the whole list, which is slow if the matching findings are old.
func (f *Filter) merged(list []issuefilter.Condition) []predicate.Finding {
	i := mergeIndex(list)
	if i < 0 {
		return f.plain(list)
	}
	return append(f.plain(slices.Delete(slices.Clone(list), i, i+1)), unionOfValues(f.DeploymentID, list[i]))
}

// mergeIndex returns the index of the condition to merge the values of, or -1. If another condition is selective too,
// nothing is merged: the planner chooses the more selective one, and every part of a merge would scan the same
// findings of the other one. Broad columns become filters of the parts. They are merged only if there is no better
// column and no condition on one ref.
func mergeIndex(list []issuefilter.Condition) int {
	chosen, oneRef := -1, false
	several := map[string]int{}
	for i, c := range list {
		use, indexed := issuefilter.UseOf(c.Column)
		switch {
		case indexed && use == issuefilter.Broad:
			if c.NumValues > 1 && c.NumValues <= maxMerged {
				several[c.Column] = i
			} else if c.Column == finding.FieldRef {
				oneRef = true
			}
		case c.NumValues == 0 || !indexed:
		case chosen >= 0 || c.NumValues == 1 || c.NumValues > maxMerged:
			return -1
		default:
			chosen = i
		}
	}
	if chosen >= 0 || oneRef {
		return chosen
	}
	for _, column := range issuefilter.BroadColumns() {
		if i, ok := several[column]; ok {
			return i
		}
	}
	return -1
}

// unionKey is the context key of the union that unionOfValues builds.
type unionKey struct{}

// unionOfValues replaces the table of findings with a union of parts, one for each value, in the order of lists. The
// order option newest limits the parts.
func unionOfValues(deploymentID int64, c issuefilter.Condition) predicate.Finding {
	return func(s *entsql.Selector) {
		parts := func(where *entsql.Predicate, limit int) *entsql.Selector {
			return partsOf(c, deploymentID, where, limit).As(finding.Table)
		}
		s.From(parts(nil, 0)).WithContext(context.WithValue(s.Context(), unionKey{}, parts))
	}
}

// newest is NewestFirst for a query that reads at most the given number of rows. It runs after all predicates, also the
// predicates of tenant isolation and visibility, and moves them and the limit into the parts of unionOfValues. Without
// a limit, PostgreSQL plans to read each part to its end, and may sort it.
func newest(rows int) finding.OrderOption {
	return func(s *entsql.Selector) {
		if parts, ok := s.Context().Value(unionKey{}).(func(*entsql.Predicate, int) *entsql.Selector); ok {
			s.From(parts(s.P(), rows)).SetP(nil)
		}
		NewestFirst(s)
	}
}

// partsOf returns the union of the findings of each value that also satisfy where. A limit of 0 means no limit.
func partsOf(c issuefilter.Condition, deploymentID int64, where *entsql.Predicate, limit int) (all *entsql.Selector) {
	for _, value := range distinctValues(c) {
		table := entsql.Table(finding.Table)
		part := entsql.Dialect(dialect.Postgres).Select().From(table).
			Where(entsql.And(entsql.EQ(table.C(finding.FieldDeploymentID), deploymentID), entsql.EQ(table.C(c.Column), value)))
		if where != nil {
			part.Where(where)
		}
		if NewestFirst(part); limit > 0 {
			part.Limit(limit)
		}
		// A query with ORDER BY must be nested to be part of a union.
		one := entsql.Dialect(dialect.Postgres).Select().From(part.As("part"))
		if all == nil {
			all = one
		} else {
			all.UnionAll(one)
		}
	}
	return all
}

// distinctValues returns the values without duplicates. A caller may repeat a value, and its findings would appear
// twice.
func distinctValues(c issuefilter.Condition) (values []any) {
	switch list := c.Values.(type) {
	case []string:
		for _, word := range distinct(list) {
			values = append(values, word)
		}
	case []int64:
		for _, id := range distinct(list) {
			values = append(values, id)
		}
	}
	return values
}

func distinct[T cmp.Ordered](list []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
