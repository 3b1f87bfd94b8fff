package ingest

import (
	"cmp"
	"context"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/scan"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/store"
)

// foreignJoin is the finding of another ref that a result equals.
type foreignJoin struct {
	id        int64
	name, ref string
	rung      string
	evidence  []byte
}

// matchForeign looks for the identities of results that are new on this ref. It matches against the primary branch by
// the whole ladder, and then against all other refs by equal evidence.
func (m *matcher) matchForeign(ctx context.Context, g *matches, former map[uint64]uint64, rules []int64, pending []int) error {
	if len(pending) == 0 || len(rules) == 0 {
		return nil
	}
	others, err := m.otherRefs(ctx)
	if err != nil || !others {
		return err
	}
	ofRules := store.InIDs(finding.FieldRuleID, rules)
	known, _, err := m.readKnown(ctx, g.group, former, entsql.And(entsql.EQ(finding.FieldRef, m.scan.Ref), ofRules))
	if err != nil {
		return err
	}
	here := make(map[string]int64, len(known))
	for _, k := range known {
		here[k.Name] = k.ID
		if g.isJoined(k.ID) {
			g.taken[k.Name] = true
		}
	}
	primary := cmp.Or(m.project.PrimaryBranch, m.project.DefaultBranch)
	if primary != "" && primary != m.scan.Ref {
		known, refs, err := m.readKnown(ctx, g.group, former, entsql.And(entsql.EQ(finding.FieldRef, primary), ofRules))
		if err != nil {
			return err
		}
		o, err := m.movedSince(ctx, g, primary, len(known))
		if err != nil {
			return err
		}
		g.joinForeign(known, refs, here, pending, o)
		pending = g.unmatched(pending)
	}
	return m.matchByKey(ctx, g, primary, former, here, pending)
}

// movedSince returns the files that have moved since the latest scan of the primary branch.
func (m *matcher) movedSince(ctx context.Context, g *matches, primary string, known int) (o identity.Options, err error) {
	if known == 0 || len(g.coverage.GetHashes()) == 0 {
		return o, nil
	}
	before, err := m.latestCoverage(ctx, g.group, primary)
	if before != nil {
		o.Moved = movedFiles(before.GetHashes(), g.coverage.GetHashes())
	}
	return o, err
}

// otherRefs reports whether another ref of the project was scanned. Both queries need only one index lookup.
func (m *matcher) otherRefs(ctx context.Context) (bool, error) {
	below, err := m.tx.Scan.Query().Where(scan.DeploymentID(m.deploymentID), scan.ProjectID(m.project.ID), scan.RefLT(m.scan.Ref)).Exist(ctx)
	if err != nil || below {
		return below, err
	}
	return m.tx.Scan.Query().Where(scan.DeploymentID(m.deploymentID), scan.ProjectID(m.project.ID), scan.RefGT(m.scan.Ref)).Exist(ctx)
}

// ruleIDs returns the stored ids of the results' rules, under current and former names. It omits rules that this scan
// created, because they have no earlier findings.
func (m *matcher) ruleIDs(ctx context.Context, g *matches, results []int) ([]int64, error) {
	aliases, err := m.names.of(ctx, g.Tool)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, n := range results {
		wanted[g.rules[g.traces.at(n).Rule]] = true
	}
	for former, now := range aliases {
		if wanted[now] {
			wanted[former] = true
		}
	}
	names := make([]string, 0, len(wanted))
	for name := range wanted {
		names = append(names, name)
	}
	slices.Sort(names)
	var ids []int64
	for part := range slices.Chunk(names, batchSize) {
		found, err := m.tx.Rule.Query().Where(rule.Tool(g.Tool), rule.NameIn(part...)).IDs(ctx)
		if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
	}
	return slices.DeleteFunc(ids, func(id int64) bool { return m.freshRules[id] }), nil
}

// matchByKey looks up the strongest evidence of unmatched results on all refs.
func (m *matcher) matchByKey(ctx context.Context, g *matches, primary string, former map[uint64]uint64, here map[string]int64, pending []int) error {
	formerOf := map[uint64][]uint64{}
	for old, now := range former {
		formerOf[now] = append(formerOf[now], old)
	}
	keys := map[int64][]int{}
	for _, n := range pending {
		e := g.traces.at(n).Evidence
		keys[e.Key()] = append(keys[e.Key()], n)
		for _, e.Rule = range formerOf[e.Rule] {
			keys[e.Key()] = append(keys[e.Key()], n)
		}
	}
	list := make([]int64, 0, len(keys))
	for key := range keys {
		list = append(list, key)
	}
	slices.Sort(list)
	for part := range slices.Chunk(list, 4*batchSize) {
		known, refs, err := m.readKnown(ctx, g.group, former, entsql.And(entsql.NEQ(finding.FieldRef, m.scan.Ref), store.InIDs(finding.FieldMatchKey, part)))
		if err != nil {
			return err
		}
		if len(known) == 0 {
			continue
		}
		known, refs = latestOfName(known, refs, primary)
		var results []int
		for _, key := range part {
			for _, n := range keys[key] {
				if g.joined[n] == 0 && g.foreign[n] == nil {
					results = append(results, n)
				}
			}
		}
		slices.Sort(results)
		g.joinForeign(known, refs, here, slices.Compact(results), identity.Options{})
	}
	return nil
}

// latestOfName keeps one finding of each identity: the finding of the primary branch, or else the latest.
func latestOfName(known []identity.Known, refs []string, primary string) ([]identity.Known, []string) {
	last := map[string]int{}
	for n, k := range known {
		if old, seen := last[k.Name]; !seen || refs[old] != primary {
			last[k.Name] = n
		}
	}
	var one []identity.Known
	var of []string
	for n, k := range known {
		if last[k.Name] == n {
			one, of = append(one, k), append(of, refs[n])
		}
	}
	return one, of
}

// joinForeign matches unmatched results with findings of other refs. If this ref has a finding of the same identity,
// the result becomes that finding. Identities that a result of this scan has already are excluded.
func (g *matches) joinForeign(known []identity.Known, refs []string, here map[string]int64, pending []int, o identity.Options) {
	free, freeRefs := known[:0:0], refs[:0:0]
	for n, k := range known {
		if !g.taken[k.Name] {
			free, freeRefs = append(free, k), append(freeRefs, refs[n])
		}
	}
	if len(free) == 0 {
		return
	}
	evidence := make([]identity.Evidence, len(pending))
	for n, result := range pending {
		evidence[n] = g.traces.at(result).Evidence
	}
	for n, join := range identity.Match(free, evidence, o) {
		result := pending[n]
		if len(join.Considered) > 0 {
			g.considered[result] = append(g.considered[result], candidates(free, join.Considered)...)
		}
		if join.Known < 0 {
			continue
		}
		k := free[join.Known]
		g.foreign[result] = &foreignJoin{id: k.ID, name: k.Name, ref: freeRefs[join.Known], rung: join.Rung, evidence: k.Evidence.Encode()}
		g.taken[k.Name] = true
		if own := here[k.Name]; own != 0 {
			g.rejoin(result, own)
		}
	}
}

// rejoin matches a result to a finding of this ref that the first pass left unmatched.
func (g *matches) rejoin(result int, id int64) { g.joined[result], g.rejoined[id] = id, true }

// candidates converts candidates to their stored form, with finding ids instead of indexes.
func candidates(known []identity.Known, list []identity.Candidate) []*storev1.FindingMatchCandidate {
	out := make([]*storev1.FindingMatchCandidate, len(list))
	for n, c := range list {
		out[n] = &storev1.FindingMatchCandidate{FindingId: known[c.Known].ID, Rung: c.Rung, Refused: c.Refused}
	}
	return out
}
