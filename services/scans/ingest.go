package scans

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/store"
)

// batchSize is how many results are compared and written at a time.
const batchSize = 500

// scanReport is one scan with its results.
type scanReport struct {
	// preparation has the results. It is used up, and released by who made it at the latest.
	*preparation
	store *store.Store
	// project is held by the transaction: see holdProject.
	project *ent.Project
	// scan is stored already. Its ref counts, and whether it is a full scan; its commit is that of the preparation.
	scan *ent.Scan
}

// outcome is what became of a result or of a stored finding: created, updated, unchanged, reopened, fixed or removed.
type outcome struct{ product, what string }

// scanResult is what a scan did to the findings.
type scanResult struct {
	counts map[outcome]int
	// coverages say in words what is known of what each analysis looked at.
	coverages map[analysis]string
}

// ingest stores the results of one scan.
type ingest struct {
	scanReport
	scanResult
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

// storeResults is the only way in for results: it stores findings, their events, how they were recognised and what was looked
// at, and closes what is gone. It does not change the row of the scan (see setCounts), nor does it tell others about it.
//
// The results were read before: see prepare. Here their evidence is matched with what is stored; then those
// are written that bring news. The transaction holds the project, so that nobody else changes its findings between the two.
func storeResults(ctx context.Context, tx *ent.Tx, report scanReport) (*scanResult, error) {
	in := &ingest{
		scanReport: report, tx: tx, deploymentID: report.scan.DeploymentID, now: store.Now(),
		scanResult: scanResult{counts: map[outcome]int{}}, freshRules: map[int64]bool{},
	}
	defer in.release() // so that a large report does not fill the memory until it is committed
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
	result := in.scanResult
	result.coverages = in.covered
	return &result, nil
}

// group is one analysis on its way in.
type group struct {
	analysis
	coverage *coverage
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
	known, err := in.tx.Finding.Query().Where(finding.DeploymentID(in.deploymentID), finding.ProjectID(in.project.ID)).Exist(ctx)
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
				in.counts[outcome{products[product], "unchanged"}] += n
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
	}, func(i *incoming) error {
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

// total is how many findings or results came to one outcome.
func (r *scanResult) total(what string) (n int) {
	for o, count := range r.counts {
		if o.what == what {
			n += count
		}
	}
	return n
}

// changed is how many findings the scan added or changed.
func (r *scanResult) changed() int {
	return r.total("created") + r.total("updated") + r.total("reopened") + r.total("fixed") + r.total("removed")
}

// accepted is how many results of a product became or met a finding.
func (r *scanResult) accepted(product string) (n int) {
	for _, what := range []string{"created", "updated", "unchanged", "reopened"} {
		n += r.counts[outcome{product, what}]
	}
	return n
}

// setCounts sets the numbers of findings of a scan.
func (r *scanResult) setCounts(update *ent.ScanUpdateOne) *ent.ScanUpdateOne {
	code, supplyChain, secret := r.accepted(sast), r.accepted(sca), r.accepted(secrets)
	return update.SetTotalCount(int32(code + supplyChain + secret)).SetCodeCount(int32(code)).
		SetSupplyChainCount(int32(supplyChain)).SetSecretsCount(int32(secret))
}

// productBits are the products of which the scan has results, in the form of the column scans.products.
func (r *scanResult) productBits() (bits int32) {
	for _, product := range []string{sast, sca, secrets} {
		if r.accepted(product) > 0 {
			bits |= productBit(product)
		}
	}
	return bits
}

// productBit is the bit of a product in the column scans.products.
func productBit(product string) int32 {
	switch product {
	case sast:
		return 1 << scansv1.Product_PRODUCT_SAST
	case sca:
		return 1 << scansv1.Product_PRODUCT_SCA
	case secrets:
		return 1 << scansv1.Product_PRODUCT_SECRETS
	}
	return 0
}
