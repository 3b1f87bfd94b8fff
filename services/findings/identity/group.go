package identity

import (
	"cmp"
	"slices"
)

// member is a finding or a result that is not joined yet.
type member struct {
	key          uint64
	line, column int32
	index        int32
	closed       bool
}

// group is all of equal evidence, in the order of the file. Findings that are there come before those that are gone.
type group struct {
	key            uint64
	known, results []member
}

// rung is the strongest evidence of the group's results, which all have the same.
func (g group) rung(m *matcher) string { return m.results[g.results[0].index].Rung() }

// eachGroup yields the groups of what is not joined yet that have both findings and results. A key of 0 leaves out.
func (m *matcher) eachGroup(key func(Evidence) uint64, yield func(group)) {
	m.eachGroupOf(key, key, yield)
}

// eachGroupOf is eachGroup with one key for findings and another one for results.
func (m *matcher) eachGroupOf(knownKey, resultKey func(Evidence) uint64, yield func(group)) {
	known := make([]member, 0, 64)
	for i := range m.known {
		if m.taken[i] {
			continue
		}
		if k := knownKey(m.known[i].Evidence); k != 0 {
			known = append(known, member{k, m.known[i].Line, m.known[i].Column, int32(i), !m.known[i].Open})
		}
	}
	if len(known) == 0 {
		return
	}
	var results []member
	for i := range m.results {
		if m.joins[i].Known >= 0 || m.left[int32(i)] {
			continue
		}
		if k := resultKey(m.results[i]); k != 0 {
			results = append(results, member{k, m.results[i].Line, m.results[i].Column, int32(i), false})
		}
	}
	slices.SortFunc(known, byPlace)
	slices.SortFunc(results, byPlace)
	for len(known) > 0 && len(results) > 0 {
		switch {
		case known[0].key < results[0].key:
			_, known = sameKey(known)
		case known[0].key > results[0].key:
			_, results = sameKey(results)
		default:
			g := group{key: known[0].key}
			g.known, known = sameKey(known)
			g.results, results = sameKey(results)
			yield(g)
		}
	}
}

func byPlace(a, b member) int {
	closed := 0
	if a.closed != b.closed {
		closed = -1
		if a.closed {
			closed = 1
		}
	}
	return cmp.Or(cmp.Compare(a.key, b.key), closed, cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column), cmp.Compare(a.index, b.index))
}

// sameKey cuts off the members of the first key.
func sameKey(all []member) (same, rest []member) {
	n := 1
	for n < len(all) && all[n].key == all[0].key {
		n++
	}
	return all[:n], all[n:]
}

// open is how many findings of the group are there.
func (g group) open() int {
	n := 0
	for n < len(g.known) && !g.known[n].closed {
		n++
	}
	return n
}

// pair joins a group in which nothing has to be chosen: as many findings are there as there are results.
func (m *matcher) pair(g group, rung string) bool {
	there := g.open()
	if there == 0 {
		there = len(g.known)
	}
	if there != len(g.results) {
		return false
	}
	for i, r := range g.results {
		m.join(g.known[i].index, r.index, rung)
	}
	return true
}

// anywhere is no limit to how far a result may be from where it is expected, in lines.
const anywhere = int32(1<<31 - 1)

// align joins the members of a group of which there are not as many on both sides: those that are nearest to where the anchors
// of the file expect them, in the order of the file, and none farther than limit. Findings that are gone get what the others leave.
// Where more than one way is as good, all of the group stay what they are: which is which is not known.
func (m *matcher) align(g group, rung string, limit int32) {
	there, gone := g.known[:g.open()], g.known[g.open():]
	rest := g.results
	if len(there) > 0 {
		expected, known := m.expect(there, g.results)
		couples := nearestInOrder(expected, places(g.results))
		if !known && !clear(expected, places(g.results), couples) {
			m.leave(g, rung)
			return
		}
		taken := map[int]bool{}
		for _, c := range couples {
			if distance(expected[c.left], placeOf(g.results[c.right]))>>columnBits <= int64(limit) {
				m.join(there[c.left].index, g.results[c.right].index, rung)
				taken[c.right] = true
			}
		}
		rest = nil
		for i, r := range g.results {
			if !taken[i] {
				rest = append(rest, r)
			}
		}
	}
	m.revive(gone, rest, rung, limit)
}

// revive joins findings that are gone with what came back: where they were, or all of them in their order.
func (m *matcher) revive(gone, results []member, rung string, limit int32) {
	if len(gone) == 0 || len(results) == 0 || limit != anywhere {
		return
	}
	if len(gone) == len(results) {
		for i, r := range results {
			m.join(gone[i].index, r.index, rung)
		}
		return
	}
	where := places(gone)
	for _, c := range nearestInOrder(where, places(results)) {
		if where[c.left] == placeOf(results[c.right]) {
			m.join(gone[c.left].index, results[c.right].index, rung)
		}
	}
}

// leave takes a group out of what weaker evidence may join.
func (m *matcher) leave(g group, rung string) {
	var known []int32
	for _, k := range g.known {
		m.taken[k.index] = true
		known = append(known, k.index)
	}
	for _, r := range g.results {
		m.refuse(r.index, known, rung, "ambiguous: equal ones were removed or added, and nothing tells which")
		if m.left == nil {
			m.left = map[int32]bool{}
		}
		m.left[r.index] = true
	}
}
