package ingest

import (
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
)

// replacedProducts are the products of the findings that the report may be about, sorted: those that it was made for,
// and those of its results. nil: it does not say, and so it is about all.
//
// A report of secrets is not about the findings that the same tool made in code, even where rule, file and line are the
// same.
func (g *group) replacedProducts() []string {
	if len(g.coverage.Products) == 0 {
		return nil
	}
	list := slices.Clone(g.coverage.Products)
	for n, found := range g.found {
		if found {
			list = append(list, products[n])
		}
	}
	return sorted(list)
}

// replaces reports whether a finding of this product may be one of those that the report is about.
func (g *group) replaces(product string) bool {
	list := g.replacedProducts()
	return list == nil || slices.Contains(list, product)
}

// ofProducts is the condition for findings that the report of an analysis is about.
func (g *group) ofProducts() *entsql.Predicate {
	var list []any
	for _, product := range g.replacedProducts() {
		list = append(list, product)
	}
	if len(list) == 0 || len(list) >= len(products)-1 {
		return entsql.NotNull(finding.FieldIssueType) // all
	}
	return entsql.In(finding.FieldIssueType, list...)
}

// aboutAll reports whether a report that was made for some products says all that one for others does; none are all.
func aboutAll(these, others []string) bool {
	if len(these) == 0 {
		return true
	}
	return len(others) > 0 && !slices.ContainsFunc(others, func(product string) bool { return !slices.Contains(these, product) })
}

// aboutSome reports whether both speak of a product; none are all.
func aboutSome(these, others []string) bool {
	return len(these) == 0 || len(others) == 0 || slices.ContainsFunc(others, func(product string) bool { return slices.Contains(these, product) })
}
