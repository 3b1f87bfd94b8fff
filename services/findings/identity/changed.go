package identity

// How far from where it is expected a result may be whose code changed.
const (
	shapeLimit = 10 // the same shape: a variable was renamed
	lineLimit  = 1  // other code
)

// changedCode joins what is left of a rule in a file by its place: with the same shape somewhat farther, otherwise only
// where it is expected. The rule and the file have to be the same; a line alone is no evidence.
func (m *matcher) changedCode() {
	sameShape := func(e *Evidence) uint64 { return mix(e.Rule, e.Path, e.Shape) }
	m.eachGroup(sameShape, sameShape, func(g group) {
		open := m.open(g)
		if len(open) == 1 && len(g.results) == 1 && len(m.anchorsIn(g)) == 0 {
			m.join(open[0], g.results[0], RungShape) // the only one of its shape in a file of which nothing else is known
			return
		}
		m.near(g, RungShape, shapeLimit)
	})
	m.drop()
	sameFile := func(e *Evidence) uint64 { return mix(e.Rule, e.Path) }
	m.eachGroup(sameFile, sameFile, func(g group) {
		m.near(g, RungLine, 0)
		if g = m.rest(g); len(g.results) == 1 && len(m.open(g)) == 1 {
			m.near(g, RungLine, lineLimit) // nothing else competes
		}
	})
}

func (m *matcher) anchorsIn(g group) []anchor {
	return m.anchorsOf(m.known[g.known[0]].Path, m.results[g.results[0]].Path)
}

// near joins findings that are there with results whose code changed, at most so many lines from where they are
// expected: one that is gone does not come back with other code. The place is evidence here, so that the lines are
// those of the anchors, or have not moved.
func (m *matcher) near(g group, rung string, limit int64) {
	open := m.open(g)
	if len(open) == 0 {
		return
	}
	known, expected := m.expected(open, m.anchorsIn(g))
	places := m.resultSpots(g.results)
	start := 0 // of the results that no cluster has yet
	for i := 0; i < len(known); {
		end := i + 1 // a cluster: findings whose reaches overlap
		for end < len(known) && distance(expected[end].line, expected[end-1].line) <= 2*limit {
			end++
		}
		for start < len(places) && int64(places[start].line) < int64(expected[i].line)-limit {
			start++
		}
		last := start
		for last < len(places) && int64(places[last].line) <= int64(expected[end-1].line)+limit {
			last++
		}
		if limit == 0 && last > start && last-start != end-i {
			m.sameColumn(known[i:end], g.results[start:last], rung)
		} else {
			for _, c := range nearest(expected[i:end], places[start:last]) {
				if distance(expected[i+c.left].line, places[start+c.right].line) <= limit {
					m.join(known[i+c.left], g.results[start+c.right], rung)
				}
			}
		}
		start, i = last, end
	}
}

// sameColumn joins findings and results of one line, of which one side has more: only the column tells which is which.
// Both are sorted by column.
func (m *matcher) sameColumn(known, results []int32, rung string) {
	ofKnown := func(k int32) uint64 { return uint64(m.known[k].Column) }
	ofResult := func(r int32) uint64 { return uint64(m.results[r].Column) }
	for all := known; len(results) > 0; {
		var there, here []int32
		column := ofResult(results[0])
		here, results = cut(results, ofResult)
		for len(all) > 0 && ofKnown(all[0]) < column {
			all = all[1:]
		}
		if len(all) > 0 && ofKnown(all[0]) == column {
			there, all = cut(all, ofKnown)
		}
		if column > 0 && len(there) == 1 && len(here) == 1 {
			m.join(there[0], here[0], rung)
			continue
		}
		for _, r := range here {
			m.refuse(r, known, rung, "ambiguous: several findings of the rule are on the line, and nothing tells them apart")
		}
	}
}
