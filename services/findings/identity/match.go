package identity

import "slices"

// Known is a finding of an earlier scan.
type Known struct {
	Evidence
	ID int64
	// Name is the fingerprint of its identity (findings.fingerprint).
	Name string
	// Open says that the latest scan reported the finding. A closed finding may be reopened, but open findings are
	// matched first.
	Open bool
}

// Options is what is known about the files of a scan. Paths are hashes (PathHash).
type Options struct {
	// Moved maps former paths to present ones. Equal contents prove these moves.
	Moved map[uint64]uint64
	// Renamed has the former paths of files that the scanner reports as renamed.
	Renamed map[uint64]bool
	// Skipped has the files that the scan could not read. Their findings are probably still there.
	Skipped map[uint64]bool
	// LookedAt reports whether the scan ran over the file, so that the file still exists. Nil means unknown.
	LookedAt func(path uint64) bool
	// NewFile reports whether the file was absent from the scan before. Nil means unknown.
	NewFile func(path uint64) bool
}

// Join is the outcome of matching one result.
type Join struct {
	// Known is the index of the finding, or -1 if the result is a new finding.
	Known int
	// Rung is the evidence that joined the two; empty for a new finding.
	Rung string
	// Considered lists at most five findings that the result could have been, if the join is not exact or there is
	// none. The chosen finding is first.
	Considered []Candidate
}

// Candidate is a finding that a result could have been.
type Candidate struct {
	// Known is the index of the finding.
	Known int
	// Rung is the evidence in favour of the finding. Refused is the reason why it was not chosen, as text for people;
	// it is empty for the chosen finding.
	Rung, Refused string
}

// Match joins results with findings of the same tool and category, one to one, by the strongest evidence first. It
// returns one Join for each result, and is deterministic. It takes at most O(n log n), and linear time for an unchanged
// report.
func Match(known []Known, results []Evidence, o Options) []Join {
	m := &matcher{
		known: known, results: results, options: o,
		joins: make([]Join, len(results)), taken: make([]bool, len(known)), certain: make([]bool, len(results)),
	}
	for i := range m.joins {
		m.joins[i].Known = -1
	}
	m.marked = slices.ContainsFunc(known, func(k Known) bool { return k.hasMarks() }) &&
		slices.ContainsFunc(results, func(e Evidence) bool { return e.hasMarks() })
	m.byKey(fullKey, fullKey, byPrints, func(g group) { m.joinInOrder(g, "") }, func(g group) { m.align(g, "") })
	for _, stage := range []func(){m.sameFile, m.movedFiles, m.movedAlone, m.changedCode, m.explain} {
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

	unmatched *unmatched // nil until the first pass is done
	table     table
	anchors   []anchor // of the files that have unmatched findings
	collected bool     // anchors include all joins so far
	ambiguous map[int32][]Candidate
	// marked says that findings and results have fingerprints or logical locations, so that they may contradict.
	marked bool
}

// fullKey is the key of all evidence except the location.
func fullKey(e *Evidence) uint64 {
	key := mix(e.Rule, e.Path, e.MatchBased, e.ToolFingerprint, e.Pattern, e.Code, e.Snippet, e.Message)
	if e.hasMarks() {
		key = mix(key, e.Logical, e.Prints[0], e.Prints[1], e.Prints[2], e.Prints[3])
	}
	return key
}

// exactRungs are tried within one file, the strongest first.
var exactRungs = []string{RungMatchBasedID, RungToolFingerprint, RungCode, RungSnippet, RungMessage}

// sameFile joins results and findings that have equal rules, paths and evidence of one rung, although other evidence
// changed.
func (m *matcher) sameFile() {
	for _, rung := range exactRungs {
		key := func(e *Evidence) uint64 {
			of := e.of(rung)
			if of == 0 {
				return 0
			}
			return mix(e.Rule, e.Path, of)
		}
		m.byKey(key, key, strictnessOf(rung), func(g group) { m.joinInOrder(g, rung) }, func(g group) { m.disambiguate(g, rung) })
	}
}

// strictnessOf returns what may contradict a rung. A message says less than the name of a function.
func strictnessOf(rung string) strictness {
	if rung == RungMessage {
		return byName
	}
	return byPrints
}

// byKey joins groups of equal keys in two passes. Unambiguous groups come first, because they show by how much the
// lines of a file moved. The second pass uses that to resolve the ambiguous groups.
func (m *matcher) byKey(knownKey, resultKey func(*Evidence) uint64, s strictness, unambiguous, ambiguous func(group)) {
	var deferred []group
	m.eachGroup(knownKey, resultKey, s, func(g group) {
		if m.isUnambiguous(g) {
			unambiguous(g)
		} else {
			deferred = append(deferred, g)
		}
	})
	m.collected = false
	for _, g := range deferred {
		if m.marked { // another part of the group may have joined some
			g = m.rest(g)
		}
		if len(g.known) > 0 && len(g.results) > 0 {
			ambiguous(g)
		}
	}
}

// isUnambiguous reports whether a group has one finding and one result, or all its open findings are on their old
// lines.
func (m *matcher) isUnambiguous(g group) bool {
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

// joinInOrder joins the members of a group by their order. An empty rung stands for the strongest evidence of each
// result. Only the location of an open finding is an anchor.
func (m *matcher) joinInOrder(g group, rung string) {
	for i, k := range g.known {
		m.join(k, g.results[i], rung)
		m.certain[g.results[i]] = m.known[k].Open
	}
}

// disambiguate joins a group of equal evidence. Its members may differ in weaker evidence, which it tries first.
func (m *matcher) disambiguate(g group, rung string) {
	for _, finer := range []func(*Evidence) uint64{namedText, text, shapeOf} {
		g = m.refine(g, finer, func(g group) { m.align(g, rung) })
	}
	m.align(g, rung)
}

// text is the hash of the code, or of the message if there is no code.
func text(e *Evidence) uint64 {
	if e.Snippet != 0 {
		return e.Snippet
	}
	return e.Message
}

// namedText is the text together with the logical location.
func namedText(e *Evidence) uint64 {
	if e.Logical == 0 {
		return 0
	}
	return mix(text(e), e.Logical)
}

func shapeOf(e *Evidence) uint64 { return e.Shape }

// join joins a finding with a result. An empty rung stands for the strongest evidence of the result.
func (m *matcher) join(k, r int32, rung string) {
	if rung == "" {
		rung = m.results[r].Rung()
	}
	m.joins[r].Known, m.joins[r].Rung, m.taken[k] = int(k), rung, true
}

func (m *matcher) anythingLeft() bool {
	m.dropJoined()
	return len(m.unmatched.known) > 0 && len(m.unmatched.results) > 0
}

// unmatched has what is not joined yet, in the order of the arguments.
type unmatched struct{ known, results []int32 }

// dropJoined removes what has been joined from the unmatched findings and results.
func (m *matcher) dropJoined() {
	if m.unmatched == nil {
		m.unmatched = &unmatched{}
		for k, taken := range m.taken {
			if !taken {
				m.unmatched.known = append(m.unmatched.known, int32(k))
			}
		}
		for r := range m.joins {
			if m.joins[r].Known < 0 {
				m.unmatched.results = append(m.unmatched.results, int32(r))
			}
		}
		return
	}
	m.unmatched.known = slices.DeleteFunc(m.unmatched.known, func(k int32) bool { return m.taken[k] })
	m.unmatched.results = slices.DeleteFunc(m.unmatched.results, func(r int32) bool { return m.joins[r].Known >= 0 })
}
