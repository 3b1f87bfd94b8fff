package identity

import (
	"cmp"
	"slices"
)

// spot is a place in a file.
type spot struct{ line, column int32 }

// couple is a pair of indexes.
type couple struct{ left, right int }

// align joins as many of a group as there are on the smaller side, keeping their order. All of the findings are in one
// file, and all of the results. Findings that are there come first; those that are gone get what is left.
func (m *matcher) align(g group, rung string) {
	open := m.open(g)
	m.alignPlaces(group{open, g.results}, rung)
	if gone := g.known[len(open):]; len(gone) > 0 && len(open) < len(g.results) {
		m.alignPlaces(m.rest(group{gone, g.results}), rung)
	}
}

// alignPlaces joins findings with results of equal evidence, of which only the place tells them apart: first those that
// are exactly where the anchors of the file expect them, then those between the same anchors, and at last the others in
// their order.
func (m *matcher) alignPlaces(g group, rung string) {
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
	for _, c := range nearest(expected, m.resultSpots(g.results)) {
		m.join(known[c.left], g.results[c.right], rung)
	}
}

// expected are findings of one file, sorted by where they are expected, and where that is.
func (m *matcher) expected(known []int32, anchors []anchor) ([]int32, []spot) {
	known = slices.Clone(known)
	line := func(k int32) int32 { line, _ := expect(anchors, m.known[k].Line); return line }
	slices.SortStableFunc(known, func(a, b int32) int {
		return cmp.Or(cmp.Compare(line(a), line(b)), cmp.Compare(m.known[a].Column, m.known[b].Column))
	})
	spots := m.knownSpots(known)
	for i := range spots {
		spots[i].line = line(known[i])
	}
	return known, spots
}

// maxOnLine is how many equal hits of one line are looked at.
const maxOnLine = 64

// alignExpected joins findings whose expected line is solid with the result that is there.
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
		for _, c := range parsimony(m.knownSpots(known[:endKnown]), m.resultSpots(results[:endResults]), above, below) {
			m.join(known[c.left], results[c.right], rung)
		}
		known, results = known[endKnown:], results[endResults:]
	}
}

func (m *matcher) knownSpots(known []int32) []spot {
	spots := make([]spot, len(known))
	for i, k := range known {
		spots[i] = spot{m.known[k].Line, m.known[k].Column}
	}
	return spots
}

func (m *matcher) resultSpots(results []int32) []spot {
	spots := make([]spot, len(results))
	for i, r := range results {
		spots[i] = spot{m.results[r].Line, m.results[r].Column}
	}
	return spots
}
