package ingest

import (
	"context"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scancoverage"
	"github.com/palisade/palisade/services/findings/lastscan"
)

// inheritProducts adds the products of the report before, if that one covered more than this one. Such reports mix
// products, and their tools write nothing about a product without results: else its last finding would never close.
//
// Reports that take turns (first code, then dependencies) share no product and stay apart. A scanner says itself what
// it scanned, whatever tool it names.
func (s *session) inheritProducts(ctx context.Context, g *matches) error {
	if g.coverage.GetFailure() != "" {
		return nil
	}
	g.reported = lastscan.Products(g.replacedProducts())
	if !g.coverage.MayMix || !s.scan.IsFullScan {
		return nil
	}
	rows, err := s.tx.ScanCoverage.Query().Where(s.ofAnalysis(g.Analysis, s.scan.Ref)...).
		Where(scancoverage.IsFullScan(true), scancoverage.ScanIDNEQ(s.scan.ID), scancoverage.ProductsNEQ(0)).
		Order(ent.Desc(scancoverage.FieldScanID)).Limit(coveragesBack).Select(scancoverage.FieldScanID, scancoverage.FieldProducts).All(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(rows, func(row *ent.ScanCoverage) bool { return *row.Products != g.reported })
	if i < 0 || *rows[i].Products&g.reported != g.reported {
		return nil
	}
	isReport, err := s.tx.Scan.Query().Where(scan.ID(rows[i].ScanID), scan.UniqueIDIsNil()).Exist(ctx)
	if isReport {
		g.coverage.Products = lastscan.List(*rows[i].Products)
	}
	return err
}

// replacedProducts returns the sorted products that the report replaces: the products that it was made for, and the
// products of its results. Nil means all products, because the report does not say.
//
// For example, a secrets report does not replace findings that the same tool reported in code, even if rule, file and
// line are equal.
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

// replaces reports whether the report replaces findings of this product.
func (g *group) replaces(product string) bool {
	list := g.replacedProducts()
	return list == nil || slices.Contains(list, product)
}

// ofProducts is the condition for the findings that the report of an analysis replaces.
func (g *group) ofProducts() *entsql.Predicate {
	var list []any
	for _, product := range g.replacedProducts() {
		list = append(list, product)
	}
	if len(list) == 0 || len(list) >= len(products)-1 {
		return entsql.NotNull(finding.FieldIssueType) // all products
	}
	return entsql.In(finding.FieldIssueType, list...)
}

// coversAll reports whether a report for these products covers everything that a report for others covers. An empty
// list means all products.
func coversAll(these, others []string) bool {
	if len(these) == 0 {
		return true
	}
	return len(others) > 0 && !slices.ContainsFunc(others, func(product string) bool { return !slices.Contains(these, product) })
}

// coversAny reports whether the lists share a product. An empty list means all products.
func coversAny(these, others []string) bool {
	return len(these) == 0 || len(others) == 0 || slices.ContainsFunc(others, func(product string) bool { return slices.Contains(these, product) })
}
