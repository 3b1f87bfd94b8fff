package backtest

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/scans/blocking"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/watch"
)

// outcome is which policies apply to the findings of a kind, if they are new or not.
type outcome struct {
	new, existing []int
	dependsOnBase bool
	// count is the product among the counts of a scan, bit its bit among the products.
	count int
	bit   int32
}

// countOf is the number of products among the counts of a scan.
var countOf = map[string]int{vocabulary.SAST: 0, vocabulary.AISAST: 0, vocabulary.SCA: 1, vocabulary.Secrets: 2}

// decide evaluates the policies once for all findings of a kind in a project.
func (p *replayed) decide(h *history, of int32) *outcome {
	k := h.kinds.list[of]
	facts := k.facts(h.rules[k.rule])
	facts.Project, facts.Tags, facts.Status = p.Name, p.tags, lifecycle.Open
	o := &outcome{existing: remediation.Applying(h.in.Policies, facts), count: countOf[k.product], bit: ingest.ProductBit(k.product)}
	facts.New = true
	o.new = remediation.Applying(h.in.Policies, facts)
	o.dependsOnBase = !slices.Equal(o.new, o.existing)
	return o
}

// replayer replays a project.
type replayer struct {
	*history
	*replayed
	out   *Summary
	yield func(*Hit)
	hit   Hit
	group []*findingOf
}

// replay replays the scans of a project.
func (p *replayed) replay(ctx context.Context, h *history, out *Summary, yield func(*Hit)) error {
	for _, s := range p.scans {
		out.Scans++
		if s.analyses == nil {
			out.Uncovered++
		}
	}
	r := &replayer{history: h, replayed: p, out: out, yield: yield}
	for group := range p.identities() {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.group = group
		decided := hasDecision(group, h.steps)
		for _, f := range group {
			r.finding(f, decided)
		}
	}
	p.findings, p.codes, p.byKey = nil, nil, nil
	return nil
}

// prepare orders the findings by identity, and evaluates the policies.
func (p *replayed) prepare(h *history) {
	slices.SortFunc(p.findings, func(a, b *findingOf) int {
		return cmp.Or(cmp.Compare(a.fingerprint, b.fingerprint), cmp.Compare(a.id, b.id))
	})
	diffs := false
	for _, s := range p.scans {
		diffs = diffs || !s.full
	}
	p.byKey = map[int64][]*findingOf{}
	for _, f := range p.findings {
		if p.outcomes[f.kind] == nil {
			p.outcomes[f.kind] = p.decide(h, f.kind)
		}
		if diffs && f.key != 0 {
			p.byKey[f.key] = append(p.byKey[f.key], f)
		}
	}
}

// identities yields the findings of each identity.
func (p *replayed) identities() iter.Seq[[]*findingOf] {
	return func(yield func([]*findingOf) bool) {
		for rest := p.findings; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].fingerprint == rest[0].fingerprint {
				n++
			}
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// finding replays the scans of the finding's ref.
func (r *replayer) finding(f *findingOf, decided bool) {
	o, scans, steps := r.outcomes[f.kind], f.ref.scans, r.steps[f.first:f.end]
	counted := false
	for i, now := range steps {
		until := int64(math.MaxInt64)
		if i+1 < len(steps) {
			until = steps[i+1].at
		}
		if now.state == muted || !now.seen() && !f.ref.hasOlder {
			continue
		}
		from := sort.Search(len(scans), func(n int) bool { return scans[n].endedAt >= now.at })
		for _, s := range scans[from:] {
			if s.endedAt >= until || counted && len(o.new) == 0 && len(o.existing) == 0 {
				break
			}
			if !r.reported(f, o, s, now) {
				continue
			}
			if !counted {
				counted = true
				r.out.Findings++
			}
			if blocking.Status(now.triage.String(), decided && r.covered(f, s)) == lifecycle.Ignored {
				continue
			}
			r.apply(f, o, s)
		}
	}
}

// apply yields the policies that apply to a reported finding.
func (r *replayer) apply(f *findingOf, o *outcome, s *scanOf) {
	policies := o.existing
	if o.dependsOnBase && r.isNew(f, s) {
		policies = o.new
	}
	if len(policies) == 0 {
		return
	}
	r.hit = Hit{
		Project: &r.Project, Scan: s.id, ScanNumber: s.number, EndedAt: s.endedAt, Ref: s.ref.name, Finding: f.id, Rule: f.rule, Policies: policies,
	}
	r.yield(&r.hit)
}

// reported reports whether a scan counts a finding: it reported it, and its rule is not only monitored. A scan of an
// older commit also counts what a newer one closed.
func (r *replayer) reported(f *findingOf, o *outcome, s *scanOf, now step) bool {
	a := r.analyses.list[f.analysis]
	ofRules := a.tool == watch.ScannerTool
	if s.ofScanner && (!f.gated || !ofRules) || !s.ofScanner && f.monitored && ofRules {
		return false
	}
	if f.firstScan == s.id || slices.Contains(f.sightings, s.id) {
		return now.seen() || s.older
	}
	if !now.seen() || s.counts[o.count] == 0 {
		return false
	}
	if s.analyses != nil {
		if s.analyses[f.analysis]&f.product == 0 {
			return false
		}
	} else if s.products&o.bit == 0 || !s.ofScanner && a.tool == watch.ScannerTool && a.category == "" {
		return false
	}
	if f.lastScan != 0 && s.id > f.lastScan && (s.full || !f.ref.hasFull) {
		return false // a later scan missed it, and none has reported it since
	}
	return s.full || s.files == nil || f.path == 0 || s.files[f.path]
}

// covered reports whether a person's decision about the same code covers a finding at the end of a scan.
func (r *replayer) covered(f *findingOf, s *scanOf) bool {
	var decided []blocking.Code
	for _, of := range r.group {
		if now, ok := at(r.steps[of.first:of.end], s.endedAt); ok && now.triage == ignored {
			decided = append(decided, r.codes[of.id])
		}
	}
	return r.codes[f.id].Ignored(decided, s.renamed)
}

// isNew reports whether the base of a scan does not have a finding.
func (r *replayer) isNew(f *findingOf, s *scanOf) bool {
	if s.base.Ref == "" {
		return true
	}
	if s.base.Ref == s.ref.name {
		return s.base.SameCommit[f.firstScan] || !r.had(f, s)
	}
	if s.full {
		return !slices.ContainsFunc(r.group, func(of *findingOf) bool { return of.ref.name == s.base.Ref && r.had(of, s) })
	}
	base, equal := map[blocking.Occurrence]bool{}, []blocking.Located(nil)
	for _, of := range r.byKey[f.key] {
		if of.ref.name == s.base.Ref && r.had(of, s) {
			base[r.codes[of.id].Occurrence()] = true
		}
	}
	for _, of := range r.group {
		if of.ref.name != s.base.Ref || !r.had(of, s) {
			continue
		}
		code := r.codes[of.id]
		base[code.Occurrence()] = true
		equal = append(equal, blocking.Located{Occurrence: code.Occurrence(), Path: code.Path})
	}
	code := r.codes[f.id]
	found := blocking.Located{Occurrence: code.Occurrence(), Path: code.Path}
	return !found.KnownTo(base, equal, s.renamed)
}

// had reports whether the base of a scan had a finding, as the scan saw it at its end.
func (r *replayer) had(f *findingOf, s *scanOf) bool {
	state, relevant, changed, ok := since(r.steps[f.first:f.end], s.endedAt)
	return ok && s.base.Had(state.String(), relevant, changed)
}
