package ingest

import (
	"cmp"
	"slices"

	"github.com/palisade/palisade/ent"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
)

// Outcome is the effect of an import on a result or a stored finding: created, updated, unchanged, reopened, fixed or
// removed; or superseded: the result is of an older scan, and a newer one no longer has it.
type Outcome struct{ Product, What string }

// Summary counts what a scan did to findings.
type Summary struct {
	Counts map[Outcome]int
	// Coverages describes the coverage of each analysis as text.
	Coverages map[Analysis]string
	// Held has the closes that wait, by analysis.
	Held []Held
	// Older has the newer scans that were stored before this one, by analysis.
	Older map[Analysis]Newer

	scanID int64
	groups map[Analysis]*matches
}

// Newer is a newer scan that was stored before.
type Newer struct {
	ScanID int64
	By     Order
}

// NewerScan is the latest of the scans in Older; 0 if there is none.
func (r *Summary) NewerScan() (id int64) {
	for _, newer := range r.Older {
		id = max(id, newer.ScanID)
	}
	return id
}

// Reported reports whether the scan reported a stored finding of its ref.
func (r *Summary) Reported(f *ent.Finding) bool {
	if f.FirstSeenScanID == r.scanID {
		return true
	}
	g := r.groups[Analysis{Tool: f.Tool, Category: f.AnalysisCategory}]
	return g != nil && g.isJoined(f.ID)
}

// Scanned is what a scan says about one analysis.
type Scanned struct {
	Analysis
	// Coverage is in its stored form, or as the scan says it if Older: then a newer scan was stored before.
	Coverage *storev1.ScanCoverage
	Older    bool
	Results  int
}

// Analyses returns the analyses of the scan, sorted.
func (r *Summary) Analyses() (list []Scanned) {
	for a, g := range r.groups {
		one := Scanned{Analysis: a, Coverage: g.stored, Older: g.newer != nil, Results: g.traces.size}
		if one.Older {
			one.Coverage = g.coverage.ScanCoverage
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Scanned) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Category, b.Category))
	})
	return list
}

// Tools returns the tools of the scan, sorted.
func (r *Summary) Tools() []string {
	var tools []string
	for a := range r.groups {
		tools = append(tools, a.Tool)
	}
	return sorted(tools)
}

// Total is the number of findings with one outcome.
func (r *Summary) Total(what string) (n int) {
	for o, count := range r.Counts {
		if o.What == what {
			n += count
		}
	}
	return n
}

// Changed is the number of findings that the scan added or changed.
func (r *Summary) Changed() int {
	return r.Total("created") + r.Total("updated") + r.Total("reopened") + r.Total("fixed") + r.Total("removed")
}

// HeldCloses is the number of findings whose close waits.
func (r *Summary) HeldCloses() (n int) {
	for _, held := range r.Held {
		n += held.Closes
	}
	return n
}

// Superseded is the number of results of an older scan that a newer one no longer has.
func (r *Summary) Superseded() int { return r.Total(superseded) }

// accepted is the number of results of a product that are stored as findings.
func (r *Summary) accepted(product string) (n int) {
	for _, what := range []string{"created", "updated", "unchanged", "reopened", superseded} {
		n += r.Counts[Outcome{Product: product, What: what}]
	}
	return n
}

// SetCounts sets the counts of a scan. Detection by AI counts as code.
func (r *Summary) SetCounts(update *ent.ScanUpdateOne) *ent.ScanUpdateOne {
	code, supplyChain, secret := r.accepted(vocabulary.SAST)+r.accepted(vocabulary.AISAST), r.accepted(vocabulary.SCA), r.accepted(vocabulary.Secrets)
	return update.SetTotalCount(int32(code + supplyChain + secret)).SetCodeCount(int32(code)).
		SetSupplyChainCount(int32(supplyChain)).SetSecretsCount(int32(secret))
}

// ProductBits returns the products of the scan's results as the bits of scans.products.
func (r *Summary) ProductBits() (bits int32) {
	for _, product := range vocabulary.Products {
		if r.accepted(product) > 0 {
			bits |= ProductBit(product)
		}
	}
	return bits
}

// ProductBit is the bit of a product in scans.products.
func ProductBit(product string) int32 {
	switch product {
	case vocabulary.SAST:
		return 1 << scansv1.Product_PRODUCT_SAST
	case vocabulary.SCA:
		return 1 << scansv1.Product_PRODUCT_SCA
	case vocabulary.Secrets:
		return 1 << scansv1.Product_PRODUCT_SECRETS
	case vocabulary.AISAST:
		return 1 << scansv1.Product_PRODUCT_AI_SAST
	}
	return 0
}
