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
	// Considered are the findings that it could have been, at most five, where the join is not exact or there is none. The
	// one that was chosen is the first.
	Considered []Candidate
}

// Candidate is a finding that a result could have been.
type Candidate struct {
	// Known is the index of the finding.
	Known int
	// Rung is the evidence that spoke for it; Refused is why it was not taken, in words for people, and empty if it was.
	Rung, Refused string
}

// Match joins results with findings of the same tool and category, one to one, by the strongest evidence first. It
// gives one Join for each result. The same arguments always give the same answer. Its cost grows with n log n at worst,
// and with n for a report that has not changed.
func Match(known []Known, results []Evidence, o Options) []Join {
	m := &matcher{
		known: known, results: results, options: o,
		joins: make([]Join, len(results)), taken: make([]bool, len(known)), certain: make([]bool, len(results)),
	}
	for i := range m.joins {
		m.joins[i].Known = -1
	}
	m.byKey(whole, whole, func(g group) { m.alike(g, "") }, func(g group) { m.align(g, "") })
	for _, stage := range []func(){m.samePlace, m.movedFiles, m.movedAlone, m.changedCode, m.explain} {
		if !m.anythingLeft() {
			break
		}
		stage()
	}
	return m.joins
}

type matcher struct {
	known   []Known
	results []Evidence
	options Options
	joins   []Join
	taken   []bool // by index of known
	certain []bool // by index of result: the join is an anchor

	left      *leftOver // nil as long as nothing is joined
	table     table
	anchors   []anchor // of the files that have something left
	anchored  bool     // anchors are those of the joins so far
	ambiguous map[int32][]Candidate
}

// whole is the key of all evidence but the place.
func whole(e *Evidence) uint64 {
	return mix(e.Rule, e.Path, e.MatchBased, e.ToolFingerprint, e.Pattern, e.Code, e.Snippet, e.Message)
}

// exactRungs are tried in the same file, the strongest first.
var exactRungs = []string{RungMatchBasedID, RungToolFingerprint, RungCode, RungSnippet, RungMessage}

// samePlace joins what has the same rule, the same file and the same evidence of one rung, though other evidence
// changed.
func (m *matcher) samePlace() {
	for _, rung := range exactRungs {
		key := func(e *Evidence) uint64 {
			of := e.of(rung)
			if of == 0 {
				return 0
			}
			return mix(e.Rule, e.Path, of)
		}
		m.byKey(key, key, func(g group) { m.alike(g, rung) }, func(g group) { m.choose(g, rung) })
	}
}

// byKey joins groups of equal keys in two turns: those in which nothing has to be chosen come first, because they tell
// by how much the lines of a file have moved; the others are told apart with that.
func (m *matcher) byKey(knownKey, resultKey func(*Evidence) uint64, sure, others func(group)) {
	var wait []group
	m.eachGroup(knownKey, resultKey, func(g group) {
		if m.nothingToChoose(g) {
			sure(g)
		} else {
			wait = append(wait, g)
		}
	})
	m.anchored = false
	for _, g := range wait {
		others(g)
	}
}

// nothingToChoose says that there is one finding and one result, or that all are where they were.
func (m *matcher) nothingToChoose(g group) bool {
	if len(g.known) != len(g.results) {
		return false
	}
	if len(g.known) == 1 {
		return true
	}
	for i, k := range g.known {
		if known, e := &m.known[k], &m.results[g.results[i]]; !known.Open || known.Line != e.Line || known.Column != e.Column {
			return false
		}
	}
	return true
}

// alike joins a group one by one. Without a rung it is the strongest evidence at hand. Only the place of a finding that
// was there is an anchor.
func (m *matcher) alike(g group, rung string) {
	for i, k := range g.known {
		m.join(k, g.results[i], rung)
		m.certain[g.results[i]] = m.known[k].Open
	}
}

// choose joins a group of equal evidence whose members may differ in weaker evidence, which tells them apart.
func (m *matcher) choose(g group, rung string) {
	for _, finer := range []func(*Evidence) uint64{text, shapeOf} {
		g = m.refine(g, finer, func(g group) { m.align(g, rung) })
	}
	m.align(g, rung)
}

// text is the code, or the message where there is none.
func text(e *Evidence) uint64 {
	if e.Snippet != 0 {
		return e.Snippet
	}
	return e.Message
}

func shapeOf(e *Evidence) uint64 { return e.Shape }

// join takes a finding for a result. Without a rung it is the strongest evidence at hand.
func (m *matcher) join(k, r int32, rung string) {
	if rung == "" {
		rung = m.results[r].Rung()
	}
	m.joins[r].Known, m.joins[r].Rung, m.taken[k] = int(k), rung, true
}

func (m *matcher) anythingLeft() bool {
	m.sweep()
	return len(m.left.known) > 0 && len(m.left.results) > 0
}

// leftOver are what is not joined yet, in the order of the arguments.
type leftOver struct{ known, results []int32 }

// sweep takes out what was joined.
func (m *matcher) sweep() {
	if m.left == nil {
		m.left = &leftOver{}
		for k, taken := range m.taken {
			if !taken {
				m.left.known = append(m.left.known, int32(k))
			}
		}
		for r := range m.joins {
			if m.joins[r].Known < 0 {
				m.left.results = append(m.left.results, int32(r))
			}
		}
		return
	}
	m.left.known = slices.DeleteFunc(m.left.known, func(k int32) bool { return m.taken[k] })
	m.left.results = slices.DeleteFunc(m.left.results, func(r int32) bool { return m.joins[r].Known >= 0 })
}
