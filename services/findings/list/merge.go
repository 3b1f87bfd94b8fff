package list

import (
	"cmp"
	"context"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
)

// mergeable is how many values of a column are merged at most: the planner of PostgreSQL looks at each by itself.
const mergeable = 20

// leading are the columns that an index of lists begins with.
var leading = []string{
	finding.FieldMalicious, finding.FieldHistorical, finding.FieldClickToFixState, finding.FieldComponentTag,
	finding.FieldPackage, finding.FieldTriageReason, finding.FieldAutotriageVerdict, finding.FieldPolicyMode,
	finding.FieldEpssProbability, finding.FieldTransitivity, finding.FieldExposure, finding.FieldValidationState,
	finding.FieldRuleID, finding.FieldProjectID, finding.FieldRef, finding.FieldSeverity, finding.FieldStatus,
}

// merged gives the conditions in a form that makes PostgreSQL read the findings of several values, each along the
// index that their column leads, and merge them: a page costs its own rows and one of each value. Otherwise it would
// sort all of them, or go through the list of all findings, which is long where what is asked for is not among the
// newest.
func (f *Filter) merged(list []condition) []predicate.Finding {
	i := several(list)
	if i < 0 {
		return f.plain(list)
	}
	return append(f.plain(slices.Delete(slices.Clone(list), i, i+1)), ofEach(f.DeploymentID, list[i]))
}

// several is the place of the condition whose values are merged; -1: none. Beside another one that leads an index the
// choice is the database's: it knows which is the rarer, and every part would go through the same findings of that
// one. Only status, severity and ref, which most findings share, are looked at on the way.
func several(list []condition) int {
	chosen, severities, onRef := -1, -1, false
	for i, c := range list {
		switch {
		case c.column == finding.FieldRef:
			onRef = true
		case c.values == 0 || !slices.Contains(leading, c.column) || c.column == finding.FieldStatus:
		case c.column == finding.FieldSeverity:
			if c.values > 1 {
				severities = i
			}
		case chosen >= 0 || c.values == 1 || c.values > mergeable:
			return -1
		default:
			chosen = i
		}
	}
	if chosen < 0 && !onRef {
		return severities
	}
	return chosen
}

// eachKey is the context key of the condition of ofEach.
type eachKey struct{}

// ofEach replaces the table of findings by its parts with one value each, in the order of lists, for newest to limit
// them.
func ofEach(deploymentID int64, c condition) predicate.Finding {
	return func(s *entsql.Selector) {
		parts := func(where *entsql.Predicate, limit int) *entsql.Selector {
			return c.parts(deploymentID, where, limit).As(finding.Table)
		}
		s.From(parts(nil, 0)).WithContext(context.WithValue(s.Context(), eachKey{}, parts))
	}
}

// newest is NewestFirst for a list of which so many rows are read at most. It comes after all predicates, those of
// the tenant and of teams too, and takes them and the limit into the parts of ofEach: else the planner of PostgreSQL
// takes each part for one that is read to its end, and may sort it.
func newest(rows int) finding.OrderOption {
	return func(s *entsql.Selector) {
		if parts, ok := s.Context().Value(eachKey{}).(func(*entsql.Predicate, int) *entsql.Selector); ok {
			s.From(parts(s.P(), rows)).SetP(nil)
		}
		NewestFirst(s)
	}
}

// parts is the union of the findings of each value of a condition that also meet another one, limited unless it is 0.
func (c condition) parts(deploymentID int64, where *entsql.Predicate, limit int) (all *entsql.Selector) {
	for _, value := range c.each() {
		table := entsql.Table(finding.Table)
		part := entsql.Dialect(dialect.Postgres).Select().From(table).
			Where(entsql.And(entsql.EQ(table.C(finding.FieldDeploymentID), deploymentID), entsql.EQ(table.C(c.column), value)))
		if where != nil {
			part.Where(where)
		}
		if NewestFirst(part); limit > 0 {
			part.Limit(limit)
		}
		// What has an order must be inside of another query to be a part.
		one := entsql.Dialect(dialect.Postgres).Select().From(part.As("part"))
		if all == nil {
			all = one
		} else {
			all.UnionAll(one)
		}
	}
	return all
}

// each are the values of a condition, each once: a caller may have named one twice, whose findings would be there
// twice.
func (c condition) each() (values []any) {
	switch list := c.named.(type) {
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
