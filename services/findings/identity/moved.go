package identity

// movedFiles finds out which files became which, and joins what is in them as if they were one.
func (m *matcher) movedFiles() {
	from, to := map[uint64]uint64{}, map[uint64]uint64{} // path to the number of its pair
	for i, pair := range m.filePairs() {
		from[pair.from], to[pair.to] = uint64(i)+1, uint64(i)+1
	}
	if len(from) == 0 {
		return
	}
	inPair := func(pairs map[uint64]uint64, of func(*Evidence) uint64) func(*Evidence) uint64 {
		return func(e *Evidence) uint64 {
			if pair := pairs[e.Path]; pair != 0 {
				if of := of(e); of != 0 {
					return mix(pair, e.Rule, of)
				}
			}
			return 0
		}
	}
	for _, rung := range exactRungs {
		name := MovedFile + rung
		of := func(e *Evidence) uint64 { return e.of(rung) }
		m.byKey(inPair(from, of), inPair(to, of), func(g group) { m.alike(g, name) }, func(g group) { m.choose(g, name) })
	}
	m.drop()
	m.eachGroup(inPair(from, shapeOf), inPair(to, shapeOf), func(g group) { m.near(g, MovedFile+RungShape, shapeLimit) })
	m.drop()
	anything := func(*Evidence) uint64 { return 1 }
	m.eachGroup(inPair(from, anything), inPair(to, anything), func(g group) { m.near(g, MovedFile+RungLine, 0) })
	m.drop()
}

// movedAlone joins single findings whose code went elsewhere while their file stayed: evidence that is left over once
// on either side, and long enough to be no coincidence.
func (m *matcher) movedAlone() {
	before := m.filesBefore()
	for _, rung := range []string{RungCode, RungSnippet} {
		key := func(e *Evidence) uint64 {
			if of := e.of(rung); of != 0 && e.Specific {
				return mix(e.Rule, of)
			}
			return 0
		}
		m.eachGroup(key, key, func(g group) { m.moveAlone(g, before, Moved+rung) })
	}
	m.drop()
}

// moveAlone joins the one finding of a group that went away with the one result that came up.
func (m *matcher) moveAlone(g group, before map[uint64]bool, rung string) {
	var known, results []int32
	for _, k := range m.open(g) {
		if !m.options.Skipped[m.known[k].Path] {
			known = append(known, k)
		}
	}
	for _, r := range g.results {
		if len(known) > 0 && (m.isNew(m.results[r].Path, before) || m.leftItsPlace(known[0])) {
			results = append(results, r)
		}
	}
	switch {
	case len(known) == 1 && len(results) == 1:
		m.join(known[0], results[0], rung)
	case len(known) > 0:
		for _, r := range results {
			m.refuse(r, known, rung, "ambiguous: the same code went away from several places, or came up at several")
		}
	}
}

// leftItsPlace says that a finding is certainly not where it was: the scan looked there, or knows that the file is
// gone.
func (m *matcher) leftItsPlace(k int32) bool {
	return m.options.LookedAt != nil && !m.options.Skipped[m.known[k].Path]
}

// filesBefore are the files of the findings that were there.
func (m *matcher) filesBefore() map[uint64]bool {
	before := map[uint64]bool{}
	for i := range m.known {
		if m.known[i].Open {
			before[m.known[i].Path] = true
		}
	}
	return before
}

// isNew says whether a file was not there before.
func (m *matcher) isNew(path uint64, before map[uint64]bool) bool {
	if before[path] {
		return false
	}
	return m.options.NewFile == nil || m.options.NewFile(path)
}
