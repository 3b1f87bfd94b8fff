package identity

// movedFiles finds the files that moved, and joins findings and results of a former and a present path as if the path
// were the same.
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
		m.byKey(inPair(from, of), inPair(to, of), strictnessOf(rung), func(g group) { m.joinInOrder(g, name) },
			func(g group) { m.disambiguate(g, name) })
	}
	m.invalidateAnchors()
	m.eachGroup(inPair(from, shapeOf), inPair(to, shapeOf), byResource, func(g group) {
		m.joinNearby(g, MovedFile+RungShape, shapeLimit)
	})
	m.invalidateAnchors()
	anything := func(*Evidence) uint64 { return 1 }
	m.eachGroup(inPair(from, anything), inPair(to, anything), byResource, func(g group) {
		m.joinNearby(g, MovedFile+RungLine, 0)
	})
	m.invalidateAnchors()
}

// movedAlone joins single findings if their code moved and their file stayed. The evidence has to be unmatched exactly
// once on either side, and long enough not to be a coincidence.
func (m *matcher) movedAlone() {
	before := m.filesBefore()
	for _, rung := range []string{RungCode, RungSnippet} {
		key := func(e *Evidence) uint64 {
			if of := e.of(rung); of != 0 && e.Specific {
				return mix(e.Rule, of)
			}
			return 0
		}
		m.eachGroup(key, key, byPrints, func(g group) { m.moveAlone(g, before, Moved+rung) })
	}
	m.invalidateAnchors()
}

// moveAlone joins the only finding of a group that disappeared with the only result that appeared.
func (m *matcher) moveAlone(g group, before map[uint64]bool, rung string) {
	var known, results []int32
	for _, k := range m.openFindings(g) {
		if !m.options.Skipped[m.known[k].Path] {
			known = append(known, k)
		}
	}
	for _, r := range g.results {
		if len(known) > 0 && (m.isNew(m.results[r].Path, before) || m.certainlyMoved(known[0])) {
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

// certainlyMoved reports whether a finding is certainly not at its former location: the scan ran over that file, or the
// file is known to be gone.
func (m *matcher) certainlyMoved(k int32) bool {
	return m.options.LookedAt != nil && !m.options.Skipped[m.known[k].Path]
}

// filesBefore returns the files of the open findings.
func (m *matcher) filesBefore() map[uint64]bool {
	before := map[uint64]bool{}
	for i := range m.known {
		if m.known[i].Open {
			before[m.known[i].Path] = true
		}
	}
	return before
}

// isNew reports whether a file did not exist before.
func (m *matcher) isNew(path uint64, before map[uint64]bool) bool {
	if before[path] {
		return false
	}
	return m.options.NewFile == nil || m.options.NewFile(path)
}
