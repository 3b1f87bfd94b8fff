package ingest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sort"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// group is what was read of one analysis.
type group struct {
	Analysis
	coverage *Coverage
	rules    map[uint64]string   // present names by hash
	traces   *traces             // of the results
	found    [len(products)]bool // products of the results
	places   []place             // of the results, sorted; until they are matched
	names    *identity.Assigner  // until all are read
}

// matched is which finding each result is.
type matched struct {
	groups []*matches // in one order, so that the same report is always worked in the same way
	// newProject: it had no finding before this scan.
	newProject bool
}

// matches are those of a group.
type matches struct {
	*group
	// previous is the latest full scan of the same analysis that came to a good end; nil: there is none, or none is
	// needed.
	previous *previousCoverage
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
}

func newMatches(g *group) *matches {
	return &matches{
		group: g, late: map[int64]bool{}, rungs: map[int]string{}, considered: map[int][]*storev1.FindingMatchCandidate{},
		named: map[int]*foreignJoin{}, taken: map[string]bool{},
	}
}

// unknown is how many results are no finding of this ref yet.
func (m *matched) unknown() (n int) {
	for _, g := range m.groups {
		for _, id := range g.joined {
			if id == 0 {
				n++
			}
		}
	}
	return n
}

// matcher is the step that decides which finding each result is.
type matcher struct {
	*session
	// freshRules are the ids of rules that this scan made.
	freshRules map[int64]bool
}

func (s *session) match(ctx context.Context, read *Reading, freshRules map[int64]bool) (*matched, error) {
	known, err := s.tx.Finding.Query().Where(finding.DeploymentID(s.deploymentID), finding.ProjectID(s.project.ID)).Exist(ctx)
	if err != nil {
		return nil, err
	}
	m, all := &matcher{s, freshRules}, &matched{newProject: !known}
	for _, g := range read.inOrder() {
		found := newMatches(g)
		all.groups = append(all.groups, found)
		if err := m.readPrevious(ctx, found); err != nil {
			return nil, err
		}
		if err := m.matchGroup(ctx, found); err != nil {
			return nil, err
		}
	}
	return all, read.spillError()
}

// matchGroup joins the results of one analysis to its findings on this ref, and the rest to identities of other refs.
func (m *matcher) matchGroup(ctx context.Context, g *matches) error {
	former, err := m.formerHashes(ctx, g.Tool)
	if err != nil {
		return err
	}
	known, err := m.joinEqual(ctx, g, former)
	if err != nil {
		return err
	}
	for _, k := range known {
		g.left = append(g.left, k.ID)
	}
	open := g.unmatched(nil)
	if len(open) == 0 {
		return nil
	}
	rules, err := m.ruleIDs(ctx, g, open)
	if err != nil {
		return err
	}
	if len(rules) > 0 {
		closed, _, err := m.readKnown(ctx, g.group, former, entsql.And(entsql.EQ(finding.FieldRef, m.scan.Ref),
			entsql.NotIn(finding.FieldState, lifecycle.Unresolved, lifecycle.Muted), store.InIDs(finding.FieldRuleID, rules)))
		if err != nil {
			return err
		}
		known = append(known, closed...)
	}
	if len(known) > 0 {
		g.climb(known, open, m.scan.IsFullScan)
		open = g.unmatched(open)
	}
	g.noteMet()
	return m.matchForeign(ctx, g, former, rules, open)
}

// climb joins what is left by the whole ladder. What was joined in the same files takes part again: it tells by how
// much lines have moved.
func (g *matches) climb(known []identity.Known, open []int, full bool) {
	files := map[uint64]bool{}
	for _, k := range known {
		files[k.Path] = true
	}
	for _, n := range open {
		files[g.traces.at(n).Path] = true
	}
	var results []int
	var evidence []identity.Evidence
	for n, id := range g.joined {
		t := g.traces.at(n)
		if id != 0 && !files[t.Path] {
			continue
		}
		results, evidence = append(results, n), append(evidence, t.Evidence)
		if id != 0 {
			known = append(known, identity.Known{Evidence: t.Evidence, ID: id, Open: true})
			g.left = append(g.left, id)
			g.joined[n] = 0
			g.settled.remove(n, t.product)
		}
	}
	for i, join := range identity.Match(known, evidence, g.options(known, full)) {
		n := results[i]
		if len(join.Considered) > 0 {
			g.considered[n] = candidates(known, join.Considered)
		}
		if join.Known < 0 {
			continue
		}
		g.joined[n] = known[join.Known].ID
		if !identity.Exact(join.Rung) {
			g.rungs[n] = join.Rung
		}
	}
}

// unmatched are the results that nothing was joined to: all, or those of some.
func (g *matches) unmatched(of []int) (open []int) {
	if of == nil {
		for n, id := range g.joined {
			if id == 0 {
				open = append(open, n)
			}
		}
		return open
	}
	for _, n := range of {
		if g.joined[n] == 0 && g.named[n] == nil {
			open = append(open, n)
		}
	}
	return open
}

// noteMet makes the list that isMet asks.
func (g *matches) noteMet() {
	g.met = g.met[:0]
	for _, id := range g.joined {
		if id != 0 {
			g.met = append(g.met, id)
		}
	}
	slices.Sort(g.met)
}

// isMet reports whether a result is this finding.
func (g *matches) isMet(id int64) bool {
	_, met := slices.BinarySearch(g.met, id)
	return met || g.late[id]
}

// options are what the coverage says about files. A scan that compares with a base looks at few files: the others are
// as they were. A scan that failed may not have come to any of them: what it did not see is taken to be where it was.
func (g *matches) options(known []identity.Known, full bool) identity.Options {
	o := identity.Options{Renamed: pathHashes(g.coverage.GetRenamed()), Skipped: pathHashes(g.coverage.GetSkipped())}
	if g.coverage.GetFailure() != "" {
		for _, k := range known {
			if k.Open {
				o.Skipped[k.Path] = true
			}
		}
		return o
	}
	if g.coverage.GetFilesKnown() {
		looked := pathHashes(g.coverage.GetFiles())
		o.LookedAt = func(path uint64) bool { return looked[path] }
		for _, k := range known {
			if !full && !looked[k.Path] && !o.Renamed[k.Path] {
				o.Skipped[k.Path] = true
			}
		}
	}
	if g.previous != nil && g.previous.GetFilesKnown() {
		before := pathHashes(g.previous.GetFiles(), g.previous.GetSkipped())
		o.NewFile = func(path uint64) bool { return !before[path] }
	}
	if g.previous != nil {
		o.Moved = movedFiles(g.previous.GetHashes(), g.coverage.GetHashes())
	}
	return o
}

func pathHashes(lists ...[]string) map[uint64]bool {
	set := map[uint64]bool{}
	for _, list := range lists {
		for _, path := range list {
			set[identity.PathHash(path)] = true
		}
	}
	return set
}

// movedFiles finds files that have another path now: their content was in one file before that is gone, and is in one
// new file.
func movedFiles(before, now map[string]string) map[uint64]uint64 {
	gone, fresh := map[string][]string{}, map[string][]string{}
	for path, hash := range before {
		if _, stays := now[path]; !stays {
			gone[hash] = append(gone[hash], path)
		}
	}
	for path, hash := range now {
		if _, old := before[path]; !old {
			fresh[hash] = append(fresh[hash], path)
		}
	}
	moved := map[uint64]uint64{}
	for hash, from := range gone {
		if to := fresh[hash]; len(from) == 1 && len(to) == 1 {
			moved[identity.PathHash(from[0])] = identity.PathHash(to[0])
		}
	}
	return moved
}

// formerHashes are the present names of a tool's rules by the hashes of their former names.
func (m *matcher) formerHashes(ctx context.Context, tool string) (map[uint64]uint64, error) {
	names, err := m.names.of(ctx, tool)
	if err != nil {
		return nil, err
	}
	hashes := make(map[uint64]uint64, len(names))
	for former, now := range names {
		hashes[ruleHash(former)] = ruleHash(now)
	}
	return hashes, nil
}

func ruleHash(name string) uint64 { return identity.EvidenceOf(identity.Text{Rule: name}).Rule }

// readKnown reads the findings of an analysis that a condition leaves, and their refs.
func (m *matcher) readKnown(ctx context.Context, g *group, former map[uint64]uint64, where *entsql.Predicate) (known []identity.Known, refs []string, err error) {
	same := map[string]string{} // one string for the many rows of a ref
	err = m.eachKnown(ctx, g, former, where, true, func() yieldKnown {
		known, refs = nil, nil
		return func(k *identity.Known, name, ref []byte, _ *stored) {
			if _, seen := same[string(ref)]; !seen {
				same[string(ref)] = string(ref)
			}
			known, refs = append(known, *k), append(refs, same[string(ref)])
			known[len(known)-1].Name = string(name)
		}
	})
	sort.Sort(byID{known, refs})
	return known, refs, err
}

// byID sorts findings together with their refs.
type byID struct {
	known []identity.Known
	refs  []string
}

func (b byID) Len() int           { return len(b.known) }
func (b byID) Less(i, j int) bool { return b.known[i].ID < b.known[j].ID }
func (b byID) Swap(i, j int) {
	b.known[i], b.known[j], b.refs[i], b.refs[j] = b.known[j], b.known[i], b.refs[j], b.refs[i]
}

// errOutdated says that a finding has evidence of another version of the ladder.
var errOutdated = errors.New("its evidence is of another version")

// eachKnown passes the findings of an analysis that a condition leaves, with the present names of their rules. If one
// is of another version of the ladder, the project is upgraded, and all begins anew.
func (m *matcher) eachKnown(ctx context.Context, g *group, former map[uint64]uint64, where *entsql.Predicate, named bool, begin func() yieldKnown) error {
	err := m.scanKnown(ctx, g, former, where, named, begin())
	if !errors.Is(err, errOutdated) {
		return err
	}
	if err := upgradeProject(ctx, m.store, m.tx, m.deploymentID, m.project.ID); err != nil {
		return fmt.Errorf("upgrade identities: %w", err)
	}
	return m.scanKnown(ctx, g, former, where, named, begin())
}

// yieldKnown takes a finding, with its name and ref if they were asked for, else with what else is stored of it;
// nothing of it may be kept but copies.
type yieldKnown func(k *identity.Known, name, ref []byte, about *stored)

// scanKnown goes round ent, which would make whole rows of the hundreds of thousands that there may be, and so it names
// the deployment itself. They come in no order: to sort them, the database would have to hold them all.
func (m *matcher) scanKnown(ctx context.Context, g *group, former map[uint64]uint64, where *entsql.Predicate, named bool, yield yieldKnown) (err error) {
	columns := []string{finding.FieldID, finding.FieldState, finding.FieldEvidence, finding.FieldContentHash, finding.FieldFilePath}
	if named {
		columns = []string{finding.FieldID, finding.FieldState, finding.FieldEvidence, finding.FieldFingerprint, finding.FieldRef}
	}
	query, args := entsql.Dialect(m.store.Dialect()).Select(columns...).From(entsql.Table(finding.Table)).Where(m.knownOf(g, where)).Query()
	tx, ok := m.store.Tx(ctx)
	if !ok {
		return errors.New("not in a transaction")
	}
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var state, encoded, name, ref sql.RawBytes
	var id, hash any // converted by nobody
	into := []any{&id, &state, &encoded, &hash, &ref}
	if named {
		into[3] = &name
	}
	var k identity.Known
	var about stored
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		k.ID, _ = id.(int64)
		if k.Evidence, _, err = identity.Decode(encoded); err != nil {
			return fmt.Errorf("finding %d: %w: %w", k.ID, errOutdated, err)
		}
		now, renamed := former[k.Rule]
		if renamed {
			k.Rule = now
		}
		about.state = stateWord(state)
		about.contentHash, _ = hash.(int64)
		about.hasPath, about.whole = ref != nil, !renamed
		k.Open = lifecycle.Seen(about.state)
		yield(&k, name, ref, &about)
	}
	return rows.Err()
}

// stateWord is the constant for a state, so that the many need no memory.
func stateWord(state []byte) string {
	for _, word := range [...]string{lifecycle.Unresolved, lifecycle.Muted, lifecycle.Fixed, lifecycle.Removed} {
		if string(state) == word {
			return word
		}
	}
	return string(state)
}

// knownOf is the condition for the findings of an analysis that have not gone into others.
func (m *matcher) knownOf(g *group, where *entsql.Predicate) *entsql.Predicate {
	return entsql.And(
		entsql.EQ(finding.FieldDeploymentID, m.deploymentID), entsql.EQ(finding.FieldProjectID, m.project.ID),
		entsql.EQ(finding.FieldTool, g.Tool), entsql.EQ(finding.FieldAnalysisCategory, g.Category),
		g.ofProducts(), entsql.IsNull(finding.FieldMergedInto), where,
	)
}
