package ingest

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
)

// batchSize is how many results are compared and written at a time.
const batchSize = 500

// Target is one scan with its results.
type Target struct {
	// Reading has the results. It is used up, and released by who made it at the latest.
	*Reading
	Store *store.Store
	// Project is held by the transaction.
	Project *ent.Project
	// Scan is stored already. Its ref counts, and whether it is a full scan; its commit is that of the reading.
	Scan *ent.Scan
}

// Outcome is what became of a result or of a stored finding: created, updated, unchanged, reopened, fixed or removed.
type Outcome struct{ Product, What string }

// Summary is what a scan did to the findings.
type Summary struct {
	Counts map[Outcome]int
	// Coverages say in words what is known of what each analysis looked at.
	Coverages map[Analysis]string
}

// ingest stores the results of one scan.
type ingest struct {
	Target
	Summary
	tx           *ent.Tx
	deploymentID int64
	now          int64

	// newProject: it had no finding before this scan.
	newProject bool
	// freshRules are the ids of rules that this scan made.
	freshRules map[int64]bool
	// statements are used again and again.
	statements map[statementKey]string
	// recognised are findings that this scan makes, but that other refs have in another form. Their events follow those of
	// their creation.
	recognised []recognised
}

// Store is the only way in for results: it stores findings, their events, how they were recognised and what was looked
// at, and closes what is gone. It does not change the row of the scan (see SetCounts), nor does it tell others about it.
//
// The results were read before: see Read. Here their evidence is matched with what is stored; then those
// are written that bring news. The transaction holds the project, so that nobody else changes its findings between the two.
func Store(ctx context.Context, tx *ent.Tx, report Target) (*Summary, error) {
	in := &ingest{
		Target: report, tx: tx, deploymentID: report.Scan.DeploymentID, now: store.Now(),
		Summary: Summary{Counts: map[Outcome]int{}}, freshRules: map[int64]bool{},
	}
	defer in.Release() // so that a large report does not fill the memory until it is committed
	in.work.Resume()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"rule aliases", in.settleNames},
		{"upgrade identities", in.upgradeIdentities},
		{"store rules", in.storeRules},
		{"match findings", in.match},
		{"write findings", in.writeFindings},
		{"record created findings", in.recordCreated},
		{"close findings", in.closeMissing},
		{"store coverage", in.storeCoverages},
	} {
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	result := in.Summary
	result.Coverages = in.covered
	return &result, nil
}

// group is one analysis on its way in.
type group struct {
	Analysis
	coverage *Coverage
	// previous is the latest full scan of the same analysis that came to a good end; nil: there is none, or none is needed.
	previous *previousCoverage
	rules    map[uint64]string   // present names by hash
	traces   *traces             // of the results
	found    [len(products)]bool // products of the results
	places   []place             // of the results, sorted; until they are matched
	names    *identity.Assigner

	// joined are the findings of this ref that the results are, by id; 0: none.
	joined []int64
	// settled are those of which nothing has to be written: the finding is stored just so.
	settled settled
	// left are the findings that were there, and that no result is at first sight.
	left []int64
	// met are sorted ids of findings that results are; late are such that were joined since.
	met  []int64
	late map[int64]bool
	// rungs are by which evidence results were recognised, where it is not exact, and considered what was near.
	rungs      map[int]string
	considered map[int][]*storev1.FindingMatchCandidate
	// named are results that are the same as a finding of another ref; taken are their names.
	named map[int]*foreignJoin
	taken map[string]bool

	next int // result of the journal
}

// match decides which finding each result is.
func (in *ingest) match(ctx context.Context) error {
	known, err := in.tx.Finding.Query().Where(finding.DeploymentID(in.deploymentID), finding.ProjectID(in.Project.ID)).Exist(ctx)
	if err != nil {
		return err
	}
	in.newProject = !known
	for _, g := range in.inOrder() {
		if err := in.readPrevious(ctx, g); err != nil {
			return err
		}
		if err := in.matchGroup(ctx, g); err != nil {
			return err
		}
	}
	return in.spillError()
}

// writeFindings writes the results that bring news.
func (in *ingest) writeFindings(ctx context.Context) error {
	open := false
	for _, g := range in.groups {
		for product, n := range g.settled.of {
			if n > 0 {
				in.Counts[Outcome{Product: products[product], What: "unchanged"}] += n
			}
		}
		open = open || g.settled.total() < g.traces.size
	}
	if !open {
		return nil
	}
	if err := in.announce(ctx); err != nil {
		return err
	}
	err := in.journal.each(func(g *group) (int, bool) {
		g.next++
		return g.next - 1, !g.settled.has(g.next - 1)
	}, func(i *Result) error {
		i.evidence = i.of.traces.at(i.result).Evidence
		if in.batch = append(in.batch, i); len(in.batch) < batchSize {
			return nil
		}
		return in.flush(ctx)
	})
	if err != nil {
		return err
	}
	if err := in.flush(ctx); err != nil {
		return err
	}
	return in.spillError()
}

// Total is how many findings or results came to one outcome.
func (r *Summary) Total(what string) (n int) {
	for o, count := range r.Counts {
		if o.What == what {
			n += count
		}
	}
	return n
}

// Changed is how many findings the scan added or changed.
func (r *Summary) Changed() int {
	return r.Total("created") + r.Total("updated") + r.Total("reopened") + r.Total("fixed") + r.Total("removed")
}

// accepted is how many results of a product became or met a finding.
func (r *Summary) accepted(product string) (n int) {
	for _, what := range []string{"created", "updated", "unchanged", "reopened"} {
		n += r.Counts[Outcome{Product: product, What: what}]
	}
	return n
}

// SetCounts sets the numbers of findings of a scan.
func (r *Summary) SetCounts(update *ent.ScanUpdateOne) *ent.ScanUpdateOne {
	code, supplyChain, secret := r.accepted(vocabulary.SAST), r.accepted(vocabulary.SCA), r.accepted(vocabulary.Secrets)
	return update.SetTotalCount(int32(code + supplyChain + secret)).SetCodeCount(int32(code)).
		SetSupplyChainCount(int32(supplyChain)).SetSecretsCount(int32(secret))
}

// ProductBits are the products of which the scan has results, in the form of the column scans.products.
func (r *Summary) ProductBits() (bits int32) {
	for _, product := range []string{vocabulary.SAST, vocabulary.SCA, vocabulary.Secrets} {
		if r.accepted(product) > 0 {
			bits |= ProductBit(product)
		}
	}
	return bits
}

// ProductBit is the bit of a product in the column scans.products.
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
