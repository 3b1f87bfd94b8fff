package ingest

import (
	"github.com/palisade/palisade/ent"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
)

// Outcome is the effect of an import on a result or a stored finding: created, updated, unchanged, reopened, fixed or
// removed.
type Outcome struct{ Product, What string }

// Summary counts what a scan did to findings.
type Summary struct {
	Counts map[Outcome]int
	// Coverages describes the coverage of each analysis as text.
	Coverages map[Analysis]string
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

// accepted is the number of results of a product that are stored as findings.
func (r *Summary) accepted(product string) (n int) {
	for _, what := range []string{"created", "updated", "unchanged", "reopened"} {
		n += r.Counts[Outcome{Product: product, What: what}]
	}
	return n
}

// SetCounts sets the counts of a scan.
func (r *Summary) SetCounts(update *ent.ScanUpdateOne) *ent.ScanUpdateOne {
	code, supplyChain, secret := r.accepted(vocabulary.SAST), r.accepted(vocabulary.SCA), r.accepted(vocabulary.Secrets)
	return update.SetTotalCount(int32(code + supplyChain + secret)).SetCodeCount(int32(code)).
		SetSupplyChainCount(int32(supplyChain)).SetSecretsCount(int32(secret))
}

// ProductBits returns the products of the scan's results as the bits of scans.products.
func (r *Summary) ProductBits() (bits int32) {
	for _, product := range []string{vocabulary.SAST, vocabulary.SCA, vocabulary.Secrets} {
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
	}
	return 0
}
