package identity

import (
	"cmp"
	"slices"
)

// location is a line and column of a file.
type location struct{ line, column int32 }

// indexPair has an index of each of two lists.
type indexPair struct{ left, right int }

// align joins findings and results of one group in order, as many as the smaller side has. All the findings are in one
// file, and all the results are in one file. Open findings come first; closed ones get the remaining results.
func (m *matcher) align(g group, rung string) {
	open := m.openFindings(g)
	m.alignByLocation(group{open, g.results}, rung)
	if gone := g.known[len(open):]; len(gone) > 0 && len(open) < len(g.results) {
		m.alignByLocation(m.rest(group{gone, g.results}), rung)
	}
}

// alignByLocation joins findings with results that have equal evidence and differ only in location. It joins in three
// steps: findings that have a result exactly on the line that the anchors predict, findings between neighbouring
// anchors, and the rest in order.
func (m *matcher) alignByLocation(g group, rung string) {
	if len(g.known) == 0 || len(g.results) == 0 {
		return
	}
	anchors := m.anchorsOf(m.known[g.known[0]].Path, m.results[g.results[0]].Path)
	if len(g.known) == len(g.results) && !reordered(anchors) {
		for i, k := range g.known {
			m.join(k, g.results[i], rung)
			m.certain[g.results[i]] = m.known[k].Open
		}
		return
	}
	if len(anchors) > 0 {
		m.alignExpected(g, anchors, rung)
		g = m.rest(g)
	}
	m.alignBetween(g, anchors, rung)
	if g = m.rest(g); len(g.known) == 0 || len(g.results) == 0 {
		return
	}
	known, expected := m.expected(g.known, anchors)
	for _, c := range nearest(expected, m.resultLocations(g.results)) {
		m.join(known[c.left], g.results[c.right], rung)
	}
}

// expected returns findings of one file sorted by their expected location, and these locations.
func (m *matcher) expected(known []int32, anchors []anchor) ([]int32, []location) {
	known = slices.Clone(known)
	line := func(k int32) int32 { line, _ := expect(anchors, m.known[k].Line); return line }
	slices.SortStableFunc(known, func(a, b int32) int {
		return cmp.Or(cmp.Compare(line(a), line(b)), cmp.Compare(m.known[a].Column, m.known[b].Column))
	})
	locations := m.knownLocations(known)
	for i := range locations {
		locations[i].line = line(known[i])
	}
	return known, locations
}

// maxOnLine bounds how many equal results of one line are compared.
const maxOnLine = 64

// alignExpected joins each finding that has a solid expected line with a result on that line.
func (m *matcher) alignExpected(g group, anchors []anchor, rung string) {
	for _, sameColumn := range []bool{true, false} {
		for _, k := range g.known {
			line, solid := expect(anchors, m.known[k].Line)
			if !solid || m.taken[k] {
				continue
			}
			at, _ := slices.BinarySearchFunc(g.results, line, func(r, line int32) int { return cmp.Compare(m.results[r].Line, line) })
			end := min(at+maxOnLine, len(g.results))
			for ; at < end && m.results[g.results[at]].Line == line; at++ {
				r := g.results[at]
				if m.joins[r].Known < 0 && (!sameColumn || m.results[r].Column == m.known[k].Column) {
					m.join(k, r, rung)
					break
				}
			}
		}
	}
}

// alignBetween joins findings and results between the same two anchors.
func (m *matcher) alignBetween(g group, anchors []anchor, rung string) {
	anchors = slices.DeleteFunc(slices.Clone(anchors), func(a anchor) bool { return !a.main })
	known, results := g.known, g.results
	for i := 0; i <= len(anchors) && len(known) > 0 && len(results) > 0; i++ {
		var above anchor
		var below *anchor
		endKnown, endResults := len(known), len(results)
		if i > 0 {
			above = anchors[i-1]
		}
		if i < len(anchors) {
			below = &anchors[i]
			endKnown, _ = slices.BinarySearchFunc(known, below.before, func(k, line int32) int { return cmp.Compare(m.known[k].Line, line) })
			endResults, _ = slices.BinarySearchFunc(results, below.after, func(r, line int32) int { return cmp.Compare(m.results[r].Line, line) })
		}
		for _, c := range parsimony(m.knownLocations(known[:endKnown]), m.resultLocations(results[:endResults]), above, below) {
			m.join(known[c.left], results[c.right], rung)
		}
		known, results = known[endKnown:], results[endResults:]
	}
}

func (m *matcher) knownLocations(known []int32) []location {
	locations := make([]location, len(known))
	for i, k := range known {
		locations[i] = location{m.known[k].Line, m.known[k].Column}
	}
	return locations
}

func (m *matcher) resultLocations(results []int32) []location {
	locations := make([]location, len(results))
	for i, r := range results {
		locations[i] = location{m.results[r].Line, m.results[r].Column}
	}
	return locations
}
