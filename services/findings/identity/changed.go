package identity

import "slices"

// How far from where it is expected a result may be whose code changed.
const (
	shapeLimit = 10 // the same shape: a variable was renamed
	lineLimit  = 1  // other code
)

// changedCode joins what is left of a rule in a file by its place: with the same shape somewhat farther, otherwise only where it
// is expected. The rule and the file have to be the same; a line alone is no evidence.
func (m *matcher) changedCode() {
	m.anchors = nil
	m.eachGroup(func(e Evidence) uint64 { return mix(e.Rule, e.Path, e.Shape) }, func(g group) {
		limit := int32(shapeLimit)
		if g.open() == 1 && len(g.results) == 1 && len(m.anchorsOf(m.pairOf(g))) == 0 {
			limit = anywhere // the only one of its shape in a file of which nothing else is known
		}
		m.alignOpen(g, RungShape, limit)
	})
	m.anchors = nil
	inFile := func(e Evidence) uint64 { return mix(e.Rule, e.Path) }
	m.eachGroup(inFile, func(g group) { m.alignOpen(g, RungLine, 0) })
	m.eachGroup(inFile, func(g group) {
		if g.open() == 1 && len(g.results) == 1 {
			m.alignOpen(g, RungLine, lineLimit)
		}
	})
}

func (m *matcher) pairOf(g group) filePair {
	return filePair{m.known[g.known[0].index].Path, m.results[g.results[0].index].Path}
}

// alignOpen is align for findings that are there: one that is gone does not come back with other code. Unlike there the place is
// evidence here, so that the lines are those of the anchors, or have not moved.
func (m *matcher) alignOpen(g group, rung string, limit int32) {
	g.known = g.known[:g.open()]
	if len(g.known) == 0 {
		return
	}
	expected := places(g.known)
	if anchors := m.anchorsOf(m.pairOf(g)); len(anchors) > 0 {
		for i, k := range g.known {
			expected[i] = at(k.line+shiftAt(anchors, k.line), k.column)
		}
	}
	if limit == anywhere {
		m.join(g.known[0].index, g.results[0].index, rung)
		return
	}
	if !slices.IsSorted(expected) { // code was reordered: nothing can be expected
		return
	}
	for _, p := range near(expected, places(g.results), limit) {
		m.join(g.known[p.left].index, g.results[p.right].index, rung)
	}
}

// near pairs each place of left with the nearest one of right within the limit (in lines), one to one and in order.
func near(left, right []place, limit int32) (couples []couple) {
	reach := (int64(limit)+1)<<columnBits - 1
	for i := 0; i < len(left); {
		// A cluster: places whose reaches overlap.
		end := i + 1
		for end < len(left) && left[end]-left[end-1] <= reach {
			end++
		}
		first, _ := slices.BinarySearch(right, (left[i]>>columnBits-int64(limit))<<columnBits)
		last := first
		for last < len(right) && right[last] <= left[end-1]+reach {
			last++
		}
		for _, p := range nearestInOrder(left[i:end], right[first:last]) {
			l, r := left[i+p.left], right[first+p.right]
			if distance(l>>columnBits, r>>columnBits) <= int64(limit) {
				couples = append(couples, couple{i + p.left, first + p.right})
			}
		}
		i = end
	}
	return once(couples)
}

// once drops pairs whose right side is taken already: clusters may share results.
func once(couples []couple) []couple {
	seen := -1
	return slices.DeleteFunc(couples, func(c couple) bool {
		if c.right <= seen {
			return true
		}
		seen = c.right
		return false
	})
}
