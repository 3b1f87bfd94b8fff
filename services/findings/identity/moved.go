package identity

import (
	"cmp"
	"slices"
)

// movedFiles finds out which files became which, and joins what is in them as if they were one.
func (m *matcher) movedFiles() {
	from, to := map[uint64]uint64{}, map[uint64]uint64{} // path to the number of its pair
	for i, pair := range m.filePairs() {
		from[pair.from], to[pair.to] = uint64(i)+1, uint64(i)+1
	}
	if len(from) == 0 {
		return
	}
	inPair := func(pairs map[uint64]uint64, rung string) func(Evidence) uint64 {
		return func(e Evidence) uint64 {
			pair, of := pairs[e.Path], pathless(e, rung)
			if rung == RungLine {
				of = 1
			}
			if pair == 0 || of == 0 {
				return 0
			}
			return mix(pair, e.Rule, of)
		}
	}
	for _, rung := range []string{RungCode, RungSnippet, RungMessage, RungToolFingerprint, RungShape, RungLine} {
		m.anchors = nil // what was joined just now tells more
		var unequal []group
		m.eachGroupOf(inPair(from, rung), inPair(to, rung), func(g group) {
			if rung == RungLine || !m.pair(g, MovedFile+rung) {
				unequal = append(unequal, g)
			}
		})
		limit := anywhere
		switch rung {
		case RungShape:
			limit = shapeLimit
		case RungLine:
			limit = 0
		}
		for _, g := range unequal {
			m.align(g, MovedFile+rung, limit)
		}
	}
}

// pathless is evidence that the path is no part of. Scanners make match-based ids of the path, too.
func pathless(e Evidence, rung string) uint64 {
	if rung == RungMatchBasedID || rung == RungMessage && e.Snippet != 0 {
		return 0
	}
	return e.of(rung)
}

// best is the strongest evidence without the path.
func best(e Evidence) uint64 {
	for _, rung := range []string{RungCode, RungSnippet, RungMessage} {
		if of := pathless(e, rung); of != 0 {
			return mix(e.Rule, of)
		}
	}
	return 0
}

// leftIn is what is not joined in one file.
type leftIn struct {
	path, dir, base uint64
	keys            map[uint64]int  // how often there is which evidence
	spots           map[uint64]bool // evidence with its place
	total           int
}

// vote says how much of a former file is in a present one.
type vote struct {
	from, to *leftIn
	common   int
	// What tells two equally good ones apart: equal names, and how much is where it was.
	sameBase, sameDir bool
	unmoved           int
}

// filePairs are the files that moved: said by the scanner's hashes, or seen by what they have in common. No file is in two pairs
// as a source, nor as a target.
func (m *matcher) filePairs() []filePair {
	present := map[uint64]bool{}
	for _, e := range m.results {
		present[e.Path] = true
	}
	before := map[uint64]bool{}
	for _, k := range m.known {
		before[k.Path] = before[k.Path] || k.Open
	}
	sources, targets := m.leftKnown(), m.leftResults()
	votes := m.votes(sources, targets, present, before)
	var pairs []filePair
	from, to := map[uint64]bool{}, map[uint64]bool{}
	take := func(p filePair) {
		if !from[p.from] && !to[p.to] {
			from[p.from], to[p.to] = true, true
			pairs = append(pairs, p)
		}
	}
	for _, old := range sortedKeys(m.options.Moved) {
		take(filePair{old, m.options.Moved[old]})
	}
	for len(votes) > 0 {
		equal := 1
		for equal < len(votes) && votes[equal].compare(votes[0]) == 0 {
			equal++
		}
		for _, v := range withoutRivals(votes[:equal], from, to) {
			take(filePair{v.from.path, v.to.path})
		}
		votes = votes[equal:]
	}
	return pairs
}

// withoutRivals leaves out of equally good pairs those of which another one wants the same file. Their files are lost for weaker
// pairs, too: it is ambiguous what became of them.
func withoutRivals(equal []vote, from, to map[uint64]bool) (clear []vote) {
	wantFrom, wantTo := map[uint64]int{}, map[uint64]int{}
	possible := slices.DeleteFunc(slices.Clone(equal), func(v vote) bool { return from[v.from.path] || to[v.to.path] })
	for _, v := range possible {
		wantFrom[v.from.path]++
		wantTo[v.to.path]++
	}
	for _, v := range possible {
		if wantFrom[v.from.path] == 1 && wantTo[v.to.path] == 1 {
			clear = append(clear, v)
		}
	}
	for _, v := range possible {
		if wantFrom[v.from.path] > 1 || wantTo[v.to.path] > 1 {
			from[v.from.path], to[v.to.path] = true, true
		}
	}
	return clear
}

// compare puts the surest first: how much of the former file there is, then what tells equally good ones apart.
func (v vote) compare(w vote) int {
	return cmp.Or(
		cmp.Compare(w.common*v.from.total, v.common*w.from.total),
		trueFirst(v.sameBase, w.sameBase),
		cmp.Compare(w.unmoved*v.from.total, v.unmoved*w.from.total),
		trueFirst(v.sameDir, w.sameDir),
		cmp.Compare(w.common, v.common),
	)
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// votes are the pairs of files that are possible, the surest first.
func (m *matcher) votes(sources, targets map[uint64]*leftIn, present, before map[uint64]bool) []vote {
	holders := map[uint64][]*leftIn{}
	for _, path := range sortedKeys(targets) {
		if target := targets[path]; m.isNew(path, before) {
			for key := range target.keys {
				holders[key] = append(holders[key], target)
			}
		}
	}
	var votes []vote
	for _, path := range sortedKeys(sources) {
		source := sources[path]
		if m.options.Skipped[path] {
			continue
		}
		common := map[*leftIn]int{}
		for key, n := range source.keys {
			if len(holders[key]) > maxHolders {
				continue
			}
			for _, target := range holders[key] {
				common[target] += min(n, target.keys[key])
			}
		}
		gone := m.isGone(path, present)
		for target, n := range common {
			v := vote{from: source, to: target, common: n, sameBase: source.base == target.base, sameDir: source.dir == target.dir}
			for spot := range source.spots {
				if target.spots[spot] {
					v.unmoved++
				}
			}
			if v.enough(gone, m.options.Renamed[path]) {
				votes = append(votes, v)
			}
		}
	}
	slices.SortFunc(votes, func(v, w vote) int {
		return cmp.Or(v.compare(w), cmp.Compare(v.from.path, w.from.path), cmp.Compare(v.to.path, w.to.path))
	})
	return votes
}

// maxHolders is in how many new files evidence may be that tells something.
const maxHolders = 100

// enough says whether two files have enough in common to be one that moved. A file that is still there can only have been split:
// then most of the new file must come from it.
func (v vote) enough(gone, renamed bool) bool {
	if gone || renamed {
		return 2*v.common >= v.from.total || v.sameBase || renamed
	}
	return v.common >= 2 && 10*v.common >= 6*v.to.total
}

// isNew says whether a file was not there before.
func (m *matcher) isNew(path uint64, before map[uint64]bool) bool {
	if before[path] {
		return false
	}
	return m.options.NewFile == nil || m.options.NewFile(path)
}

// isGone says whether a file is not there any more, as far as that is known.
func (m *matcher) isGone(path uint64, present map[uint64]bool) bool {
	if present[path] {
		return false
	}
	return m.options.LookedAt == nil || !m.options.LookedAt(path)
}

func (m *matcher) leftKnown() map[uint64]*leftIn {
	left := map[uint64]*leftIn{}
	for i, k := range m.known {
		if !m.taken[i] && k.Open {
			add(left, k.Evidence)
		}
	}
	return left
}

func (m *matcher) leftResults() map[uint64]*leftIn {
	left := map[uint64]*leftIn{}
	for i, e := range m.results {
		if m.joins[i].Known < 0 {
			add(left, e)
		}
	}
	return left
}

func add(left map[uint64]*leftIn, e Evidence) {
	file := left[e.Path]
	if file == nil {
		file = &leftIn{path: e.Path, dir: e.Dir, base: e.Base, keys: map[uint64]int{}, spots: map[uint64]bool{}}
		left[e.Path] = file
	}
	file.total++
	if key := best(e); key != 0 {
		file.keys[key]++
		file.spots[mix(key, uint64(e.Line), uint64(e.Column))] = true
	}
}

func sortedKeys[V any](all map[uint64]V) []uint64 {
	keys := make([]uint64, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// movedAlone joins single findings whose code went to a new file while the old one stayed: evidence that is unique on both sides
// and long enough to be no coincidence.
func (m *matcher) movedAlone() {
	before := map[uint64]bool{}
	for _, k := range m.known {
		before[k.Path] = before[k.Path] || k.Open
	}
	for _, rung := range []string{RungCode, RungSnippet} {
		m.eachGroup(func(e Evidence) uint64 {
			if of := pathless(e, rung); of != 0 && e.Specific {
				return mix(e.Rule, of)
			}
			return 0
		}, func(g group) {
			known, results := m.sourcesOf(g), m.targetsOf(g, before)
			switch {
			case len(known) == 1 && len(results) == 1:
				m.join(known[0], results[0], Moved+rung)
			case len(known) > 0:
				for _, r := range results {
					m.refuse(r, known, Moved+rung, "ambiguous: the same code vanished from several places, or came up at several")
				}
			}
		})
	}
}

// sourcesOf are the findings of a group that may have gone elsewhere.
func (m *matcher) sourcesOf(g group) (sources []int32) {
	for _, k := range g.known[:g.open()] {
		if !m.options.Skipped[m.known[k.index].Path] {
			sources = append(sources, k.index)
		}
	}
	return sources
}

// targetsOf are the results of a group in files that were not there before.
func (m *matcher) targetsOf(g group, before map[uint64]bool) (targets []int32) {
	for _, r := range g.results {
		if m.isNew(m.results[r.index].Path, before) {
			targets = append(targets, r.index)
		}
	}
	return targets
}
