package identity

// The maximal distance in lines between a result with changed code and its expected line.
const (
	shapeLimit = 10 // the shape is the same: a variable was renamed
	lineLimit  = 1  // the code differs
)

// changedCode joins the unmatched findings and results of a rule in a file by location. Code of the same shape may be
// several lines away; other code has to be on the expected line. The rule and the file have to be equal, because a line
// alone is no evidence.
func (m *matcher) changedCode() {
	sameName := func(e *Evidence) uint64 {
		if e.Logical == 0 || e.hasCode() {
			return 0
		}
		return mix(e.Rule, e.Path, e.Logical)
	}
	m.eachGroup(sameName, sameName, byResource, func(g group) {
		if open := m.openFindings(g); len(open) == 1 && len(g.results) == 1 {
			m.join(open[0], g.results[0], RungLogical)
		}
	})
	sameShape := func(e *Evidence) uint64 { return mix(e.Rule, e.Path, e.Shape) }
	m.eachGroup(sameShape, sameShape, byResource, func(g group) {
		open := m.openFindings(g)
		// The shape of a message is weaker than a hash that says that the code differs.
		hashed := m.results[g.results[0]].Code != 0 && m.results[g.results[0]].Snippet == 0
		if len(open) == 1 && len(g.results) == 1 && !hashed && len(m.anchorsIn(g)) == 0 {
			m.join(open[0], g.results[0], RungShape) // the only one of its shape, in a file without anchors
			return
		}
		m.joinNearby(g, RungShape, shapeLimit)
	})
	m.invalidateAnchors()
	sameFile := func(e *Evidence) uint64 { return mix(e.Rule, e.Path) }
	m.eachGroup(sameFile, sameFile, byResource, func(g group) {
		m.joinNearby(g, RungLine, 0)
		if g = m.rest(g); len(g.results) == 1 && len(m.openFindings(g)) == 1 {
			m.joinNearby(g, RungLine, lineLimit) // nothing else competes
		}
	})
}

func (m *matcher) anchorsIn(g group) []anchor {
	return m.anchorsOf(m.known[g.known[0]].Path, m.results[g.results[0]].Path)
}

// joinNearby joins open findings with results of changed code, at most limit lines from the expected line. A closed
// finding is not reopened by other code. The anchors predict the lines; without anchors lines are unchanged.
func (m *matcher) joinNearby(g group, rung string, limit int64) {
	open := m.openFindings(g)
	if len(open) == 0 {
		return
	}
	known, expected := m.expected(open, m.anchorsIn(g))
	locations := m.resultLocations(g.results)
	start := 0 // the first result that no earlier cluster covers
	for i := 0; i < len(known); {
		end := i + 1 // a cluster is a run of findings with overlapping ranges
		for end < len(known) && distance(expected[end].line, expected[end-1].line) <= 2*limit {
			end++
		}
		for start < len(locations) && int64(locations[start].line) < int64(expected[i].line)-limit {
			start++
		}
		last := start
		for last < len(locations) && int64(locations[last].line) <= int64(expected[end-1].line)+limit {
			last++
		}
		if limit == 0 && last > start && last-start != end-i {
			m.sameColumn(known[i:end], g.results[start:last], rung)
		} else {
			for _, c := range nearest(expected[i:end], locations[start:last]) {
				if distance(expected[i+c.left].line, locations[start+c.right].line) <= limit {
					m.join(known[i+c.left], g.results[start+c.right], rung)
				}
			}
		}
		start, i = last, end
	}
}

// sameColumn joins findings and results of one line by column, if their numbers differ. Both lists are sorted by
// column.
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
