package identity

import "slices"

// Known is a finding of an earlier scan.
type Known struct {
	Evidence
	ID int64
	// Name is that of its identity (findings.fingerprint).
	Name string
	// Open says that the latest scan saw it. One that is gone may come back, but gives way to one that is there.
	Open bool
}

// Options is what is known about the files of a scan. Paths are hashes (PathHash).
type Options struct {
	// Moved maps former paths to present ones where equal contents prove it.
	Moved map[uint64]uint64
	// Renamed are former paths of files that the scanner says were renamed.
	Renamed map[uint64]bool
	// Skipped are files that the scan could not look at: what is known of them is probably still there.
	Skipped map[uint64]bool
	// LookedAt says that the scan ran over the file, so that it is still there; nil if that is not known.
	LookedAt func(path uint64) bool
	// NewFile says that the file was not there in the scan before; nil if that is not known.
	NewFile func(path uint64) bool
}

// Join is what became of one result.
type Join struct {
	// Known is the index of the finding, -1 for a new one.
	Known int
	// Rung is the evidence that joined them; empty for a new one.
	Rung string
	// Considered are other findings that it could have been, at most five, where the join is not exact or there is none.
	Considered []Candidate
}

// Candidate is a finding that a result could have been.
type Candidate struct {
	// Known is the index of the finding.
	Known int
	// Rung is the evidence that spoke for it; Refused is why it was not taken, in words for people.
	Rung, Refused string
}

// Match joins results with findings of the same tool and category, one to one, by the strongest evidence first. It gives one
// Join for each result. The same arguments always give the same answer. Its cost grows with n log n.
func Match(known []Known, results []Evidence, o Options) []Join {
	m := &matcher{known: known, results: results, options: o, joins: make([]Join, len(results)), taken: make([]bool, len(known))}
	for i := range m.joins {
		m.joins[i].Known = -1
	}
	if len(known) == 0 || len(results) == 0 {
		return m.joins
	}
	m.samePlace()
	if m.anythingLeft() {
		m.movedFiles()
		m.movedAlone()
		m.changedCode()
		m.explain()
	}
	return m.joins
}

type matcher struct {
	known   []Known
	results []Evidence
	options Options
	joins   []Join
	taken   []bool // by index of known

	pending   map[uint64]struct{}   // groups of unequal size, which wait for anchors
	anchors   map[filePair][]anchor // of files that have something left
	ambiguous map[int32][]Candidate // by result
	left      map[int32]bool        // results that nothing weaker may join
}

// exactRungs are tried in the same file, the strongest first.
var exactRungs = []string{RungMatchBasedID, RungToolFingerprint, RungCode, RungSnippet, RungMessage}

// whole is the key of all evidence but the place.
func whole(e Evidence) uint64 {
	return mix(e.Rule, e.Path, e.MatchBased, e.ToolFingerprint, e.Pattern, e.Code, e.Snippet, e.Message)
}

// samePlace joins what has the same rule, the same file and the same evidence. First come groups of equal size, in the order of
// the file: they are certain, and tell by how much lines have moved. With them the others are told apart.
func (m *matcher) samePlace() {
	m.pending = map[uint64]struct{}{}
	m.eachGroup(whole, func(g group) {
		if !m.pair(g, g.rung(m)) {
			m.pending[g.key] = struct{}{}
		}
	})
	waits := func(e Evidence) bool { _, waits := m.pending[whole(e)]; return waits }
	for _, rung := range exactRungs {
		m.eachGroup(unless(waits, m.inPlace(rung)), func(g group) { m.pair(g, rung) })
	}
	if len(m.pending) > 0 {
		m.eachGroup(whole, func(g group) { m.align(g, g.rung(m), anywhere) })
	}
	for _, rung := range exactRungs {
		m.eachGroup(m.inPlace(rung), func(g group) { m.align(g, rung, anywhere) })
	}
}

// inPlace is the key of a rung in the same file; 0 leaves a result out. A message is evidence only where there is no code.
func (m *matcher) inPlace(rung string) func(Evidence) uint64 {
	return func(e Evidence) uint64 {
		if rung == RungMessage && e.Snippet != 0 {
			return 0
		}
		if of := e.of(rung); of != 0 {
			return mix(e.Rule, e.Path, of)
		}
		return 0
	}
}

func unless(left func(Evidence) bool, key func(Evidence) uint64) func(Evidence) uint64 {
	return func(e Evidence) uint64 {
		if left(e) {
			return 0
		}
		return key(e)
	}
}

func (m *matcher) anythingLeft() bool {
	return slices.Contains(m.taken, false) && slices.ContainsFunc(m.joins, func(j Join) bool { return j.Known < 0 })
}

// join takes a finding for a result.
func (m *matcher) join(k, r int32, rung string) {
	m.joins[r].Known, m.joins[r].Rung, m.taken[k] = int(k), rung, true
}
