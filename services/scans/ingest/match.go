package ingest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// group has what was read for one analysis.
type group struct {
	Analysis
	coverage   *Coverage
	rules      map[uint64]string   // current names by hash
	traces     *traces             // of the results
	found      [len(products)]bool // products of the results
	byLocation []locationEntry     // of the results, sorted; nil after matching
	names      *identity.Assigner  // nil after reading
}

// matched says which finding each result is.
type matched struct {
	groups []*matches // sorted, so that importing a report twice does the same
	// newProject says that the project had no findings before this scan.
	newProject bool
}

// matches has the matches of one group.
type matches struct {
	*group
	// previous is the latest successful full scan of the same analysis; nil if there is none or it is not needed.
	previous *previousCoverage
	// reported is the bit set of the products whose findings the run reports; 0 if it failed.
	reported int32
	// stored is the coverage of this scan in its stored form; nil if the scan is older.
	stored *storev1.ScanCoverage
	// newer are the newer scans that were stored before; nil if there is none.
	newer newerScans
	// absences are the files that this scan did not search. elsewhere has the hashes of those that belong to another
	// part of the project.
	absences  *absences
	elsewhere map[uint64]bool
	// kept are missing findings in languages that were parsed only in part.
	kept []int64
	// joined has the id of the finding of this ref for each result; 0 means no finding.
	joined []int64
	// unchanged has the results that equal their stored finding and need no write.
	unchanged unchanged
	// open is the number of open findings of this ref before the scan.
	open int
	// unjoined has the open findings that the first pass joined to no result.
	unjoined []int64
	// rebased maps former to present paths of files that the report only places differently (see rebasedFiles).
	rebased map[uint64]uint64
	// joinedIDs has the sorted ids of the joined findings. rejoined has the findings that were joined after it was
	// built.
	joinedIDs []int64
	rejoined  map[int64]bool
	// rungs has the evidence of inexact joins by result. considered has the candidates.
	rungs      map[int]string
	considered map[int][]*storev1.FindingMatchCandidate
	// foreign has the results that equal a finding of another ref. taken has the fingerprints of those findings.
	foreign map[int]*foreignJoin
	taken   map[string]bool
}

func newMatches(g *group) *matches {
	return &matches{
		group: g, rejoined: map[int64]bool{}, rungs: map[int]string{}, considered: map[int][]*storev1.FindingMatchCandidate{},
		foreign: map[int]*foreignJoin{}, taken: map[string]bool{},
	}
}

// unknown is the number of results without a finding of this ref.
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
	// freshRules are the ids of rules that this scan created.
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
		if err := m.inheritProducts(ctx, found); err != nil {
			return nil, fmt.Errorf("products of the report before: %w", err)
		}
		if err := m.readPrevious(ctx, found); err != nil {
			return nil, err
		}
		if found.newer, err = m.newerScans(ctx, g); err != nil {
			return nil, fmt.Errorf("look for newer scans: %w", err)
		}
		found.absences = newAbsences(m.session, g)
		found.absences.older = found.newer != nil
		if err := m.matchGroup(ctx, found); err != nil {
			return nil, err
		}
	}
	return all, read.spillError()
}

// matchGroup joins the results of one analysis to findings of this ref, and the remaining results to identities of
// other refs.
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
		g.unjoined = append(g.unjoined, k.ID)
	}
	pending := g.unmatched(nil)
	if len(pending) == 0 {
		return nil
	}
	rules, err := m.ruleIDs(ctx, g, pending)
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
		if g.rebased, err = m.rebasedFiles(ctx, g); err != nil {
			return err
		}
		if g.elsewhere, err = g.absences.elsewhere(ctx, known); err != nil {
			return err
		}
		g.matchByLadder(known, pending, m.scan.IsFullScan)
		pending = g.unmatched(pending)
	}
	g.indexJoined()
	return m.matchForeign(ctx, g, former, rules, pending)
}

// matchByLadder joins the remaining results by the whole ladder. Results of the same files that are joined already take
// part again, because they show by how much lines have moved.
func (g *matches) matchByLadder(known []identity.Known, pending []int, full bool) {
	files := map[uint64]bool{}
	for _, k := range known {
		files[k.Path] = true
	}
	for _, n := range pending {
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
			g.unjoined = append(g.unjoined, id)
			g.joined[n] = 0
			g.unchanged.remove(n, t.product)
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

// unmatched returns the results that have no finding: among all results, or among the given ones.
func (g *matches) unmatched(of []int) (pending []int) {
	if of == nil {
		for n, id := range g.joined {
			if id == 0 {
				pending = append(pending, n)
			}
		}
		return pending
	}
	for _, n := range of {
		if g.joined[n] == 0 && g.foreign[n] == nil {
			pending = append(pending, n)
		}
	}
	return pending
}

// indexJoined builds the list that isJoined searches.
func (g *matches) indexJoined() {
	g.joinedIDs = g.joinedIDs[:0]
	for _, id := range g.joined {
		if id != 0 {
			g.joinedIDs = append(g.joinedIDs, id)
		}
	}
	slices.Sort(g.joinedIDs)
}

// isJoined reports whether a result was joined to this finding.
func (g *matches) isJoined(id int64) bool {
	_, joined := slices.BinarySearch(g.joinedIDs, id)
	return joined || g.rejoined[id]
}

// options derives the options of matching from the coverage. A diff scan reads few files; all other files are
// unchanged. A failed scan may not have reached a file, so its open findings are taken to be unchanged.
func (g *matches) options(known []identity.Known, full bool) identity.Options {
	o := identity.Options{Renamed: pathHashes(g.coverage.GetRenamed()), Skipped: pathHashes(g.coverage.GetSkipped(), g.coverage.GetUnresolved())}
	maps.Copy(o.Skipped, g.elsewhere)
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
		before := pathHashes(g.previous.GetFiles(), g.previous.GetSkipped(), g.previous.GetUnresolved())
		o.NewFile = func(path uint64) bool { return !before[path] }
	}
	if g.previous != nil {
		o.Moved = movedFiles(g.previous.GetHashes(), g.coverage.GetHashes())
	}
	if o.Moved == nil {
		o.Moved = g.rebased
	} else {
		maps.Copy(o.Moved, g.rebased)
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

// movedFiles finds renamed files: the content was in exactly one file that is gone, and is in exactly one new file.
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

// formerHashes maps the hashes of former rule names of a tool to the hashes of their current names.
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

// readKnown reads the findings of an analysis that satisfy a condition, and their refs.
func (m *matcher) readKnown(ctx context.Context, g *group, former map[uint64]uint64, where *entsql.Predicate) (known []identity.Known, refs []string, err error) {
	same := map[string]string{} // interns refs, which most rows share
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

// eachKnown yields the findings of an analysis that satisfy a condition, with the current names of their rules. If it
// reads evidence of another version of the ladder, it upgrades the project and starts again.
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

// yieldKnown receives a finding: with its fingerprint and ref if they were requested, otherwise with its stored state.
// The slices and pointers are valid during the call only.
type yieldKnown func(k *identity.Known, name, ref []byte, about *stored)

// scanKnown bypasses ent, which would build whole entities of hundreds of thousands of rows. So the query itself has to
// limit the deployment. The rows are unordered: sorting would make the database hold all of them.
func (m *matcher) scanKnown(ctx context.Context, g *group, former map[uint64]uint64, where *entsql.Predicate, named bool, yield yieldKnown) (err error) {
	columns := []string{finding.FieldID, finding.FieldState, finding.FieldEvidence, finding.FieldContentHash, finding.FieldFilePath, finding.FieldIgnoredByPattern}
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
	var state, encoded, name, ref, pattern sql.RawBytes
	var id, hash any // no conversion
	into := []any{&id, &state, &encoded, &hash, &ref, &pattern}
	if named {
		into = []any{&id, &state, &encoded, &name, &ref}
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
		about.hasPath, about.whole, about.ignored = ref != nil, !renamed, pattern != nil
		k.Open = lifecycle.Seen(about.state)
		yield(&k, name, ref, &about)
	}
	return rows.Err()
}

// stateWord returns the constant for a state, which saves an allocation per row.
func stateWord(state []byte) string {
	for _, word := range [...]string{lifecycle.Unresolved, lifecycle.Muted, lifecycle.Fixed, lifecycle.Removed} {
		if string(state) == word {
			return word
		}
	}
	return string(state)
}

// knownOf is the condition for the findings of an analysis that are not merged into others.
func (m *matcher) knownOf(g *group, where *entsql.Predicate) *entsql.Predicate {
	return entsql.And(
		entsql.EQ(finding.FieldDeploymentID, m.deploymentID), entsql.EQ(finding.FieldProjectID, m.project.ID),
		entsql.EQ(finding.FieldTool, g.Tool), entsql.EQ(finding.FieldAnalysisCategory, g.Category),
		g.ofProducts(), entsql.IsNull(finding.FieldMergedInto), where,
	)
}
