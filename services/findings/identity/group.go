package identity

import (
	"cmp"
	"slices"
)

// group has the unmatched findings and results of equal evidence, as indexes in file order. Open findings come before
// closed ones.
type group struct{ known, results []int32 }

// table is a hash table of evidence keys. Each pass reuses its memory.
type table struct {
	slots   []int32  // number of the key + 1, by hash
	keys    []uint64 // by number
	of      [2][]int32
	count   [2][]int32
	members [2][]int32
}

const (
	sideKnown = iota
	sideResults
)

// number returns the number of a key, and adds the key if add is set. It returns -1 for an unknown key otherwise.
func (t *table) number(key uint64, add bool) int32 {
	mask := uint64(len(t.slots) - 1)
	for at := key & mask; ; at = (at + 1) & mask {
		n := t.slots[at]
		if n == 0 {
			if !add {
				return -1
			}
			t.keys = append(t.keys, key)
			t.slots[at] = int32(len(t.keys))
			return int32(len(t.keys) - 1)
		}
		if t.keys[n-1] == key {
			return n - 1
		}
	}
}

// sized returns a zeroed slice of length n. It reuses the memory of s if that suffices.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

func (t *table) reset(known, results int) {
	slots := 1
	for slots < 2*known {
		slots *= 2
	}
	t.slots = sized(t.slots, slots)
	t.keys = sized(t.keys, known)[:0]
	t.of[sideKnown], t.of[sideResults] = sized(t.of[sideKnown], known), sized(t.of[sideResults], results)
}

// eachGroup yields the groups that have both unmatched findings and unmatched results. There is one key function for
// findings and one for results; a key of 0 excludes an entry. Groups with contradictions are split. eachGroup takes
// linear time, except for sorting within groups. A group is valid until the next call.
func (m *matcher) eachGroup(knownKey, resultKey func(*Evidence) uint64, s strictness, yield func(group)) {
	if m.unmatched != nil {
		m.dropJoined()
	}
	knownN, knownAt := m.side(sideKnown)
	resultsN, resultAt := m.side(sideResults)
	t := &m.table
	t.reset(knownN, resultsN)
	for i := range knownN {
		t.of[sideKnown][i] = -1
		if key := knownKey(&m.known[knownAt(i)].Evidence); key != 0 {
			t.of[sideKnown][i] = t.number(key, true)
		}
	}
	if len(t.keys) == 0 {
		return
	}
	for i := range resultsN {
		t.of[sideResults][i] = -1
		if key := resultKey(&m.results[resultAt(i)]); key != 0 {
			t.of[sideResults][i] = t.number(key, false)
		}
	}
	t.collect(sideKnown, knownAt)
	t.collect(sideResults, resultAt)
	var known, results int32
	for n := range t.keys {
		g := group{t.members[sideKnown][known:t.count[sideKnown][n]], t.members[sideResults][results:t.count[sideResults][n]]}
		known, results = t.count[sideKnown][n], t.count[sideResults][n]
		if len(g.results) > 0 {
			m.inOrder(g)
			m.eachCompatible(g, s, yield)
		}
	}
}

// side returns the number of unmatched entries of a side, and a function that returns the index of each.
func (m *matcher) side(side int) (n int, at func(int) int32) {
	if m.unmatched == nil {
		if side == sideKnown {
			n = len(m.known)
		} else {
			n = len(m.results)
		}
		return n, func(i int) int32 { return int32(i) }
	}
	all := m.unmatched.known
	if side == sideResults {
		all = m.unmatched.results
	}
	return len(all), func(i int) int32 { return all[i] }
}

// collect sorts the members of a side by key number. Afterwards t.count has the end of each key's members.
func (t *table) collect(side int, at func(int) int32) {
	ends := sized(t.count[side], len(t.keys))
	total := int32(0)
	for _, n := range t.of[side] {
		if n >= 0 {
			ends[n]++
			total++
		}
	}
	start := int32(0)
	for n, count := range ends {
		ends[n] = start
		start += count
	}
	members := sized(t.members[side], int(total))
	for i, n := range t.of[side] {
		if n >= 0 {
			members[ends[n]] = at(i)
			ends[n]++
		}
	}
	t.count[side], t.members[side] = ends, members
}

// inOrder sorts a group by location, open findings first.
func (m *matcher) inOrder(g group) {
	if len(g.known) > 1 {
		slices.SortFunc(g.known, func(a, b int32) int {
			x, y := &m.known[a], &m.known[b]
			if x.Open != y.Open {
				if x.Open {
					return -1
				}
				return 1
			}
			return byPlace(&x.Evidence, &y.Evidence, a, b)
		})
	}
	if len(g.results) > 1 {
		slices.SortFunc(g.results, func(a, b int32) int { return byPlace(&m.results[a], &m.results[b], a, b) })
	}
}

func byPlace(x, y *Evidence, a, b int32) int {
	if x.Line != y.Line {
		return cmp.Compare(x.Line, y.Line)
	}
	return cmp.Or(cmp.Compare(x.Column, y.Column), cmp.Compare(a, b))
}

// openFindings returns the open findings of the group.
func (m *matcher) openFindings(g group) []int32 {
	n := 0
	for n < len(g.known) && m.known[g.known[n]].Open {
		n++
	}
	return g.known[:n]
}

// refine splits a group by finer evidence and yields the parts that have both findings and results. It returns what is
// still unmatched.
func (m *matcher) refine(g group, finer func(*Evidence) uint64, yield func(group)) group {
	known, results := slices.Clone(g.known), slices.Clone(g.results)
	ofKnown := func(k int32) uint64 { return finer(&m.known[k].Evidence) }
	ofResult := func(r int32) uint64 { return finer(&m.results[r]) }
	slices.SortStableFunc(known, func(a, b int32) int { return cmp.Compare(ofKnown(a), ofKnown(b)) })
	slices.SortStableFunc(results, func(a, b int32) int { return cmp.Compare(ofResult(a), ofResult(b)) })
	for len(known) > 0 && len(results) > 0 {
		k, r := ofKnown(known[0]), ofResult(results[0])
		var part group
		if k <= r {
			part.known, known = cut(known, ofKnown)
		}
		if r <= k {
			part.results, results = cut(results, ofResult)
		}
		if k == r && k != 0 {
			yield(part)
		}
	}
	return m.rest(g)
}

// cut splits off the leading members that have the same key.
func cut(all []int32, of func(int32) uint64) (same, rest []int32) {
	n := 1
	for n < len(all) && of(all[n]) == of(all[0]) {
		n++
	}
	return all[:n:n], all[n:]
}

// rest returns the members of a group that are not joined yet.
func (m *matcher) rest(g group) (rest group) {
	for _, k := range g.known {
		if !m.taken[k] {
			rest.known = append(rest.known, k)
		}
	}
	for _, r := range g.results {
		if m.joins[r].Known < 0 {
			rest.results = append(rest.results, r)
		}
	}
	return rest
}
