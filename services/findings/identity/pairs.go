package identity

import (
	"cmp"
	"slices"
)

// filePair is a file before and after.
type filePair struct{ from, to uint64 }

// filePairs are the files that moved: said by equal contents, or seen by what they have in common. No file is in two
// pairs as a source, nor as a target.
func (m *matcher) filePairs() (pairs []filePair) {
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
	for rest := m.votes(); len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].compare(rest[0]) == 0 {
			n++
		}
		// Of equally good votes only those count that have no rival for one of their files.
		equal := slices.DeleteFunc(rest[:n:n], func(v vote) bool { return from[v.from.path] || to[v.to.path] })
		rest = rest[n:]
		sources, targets := map[uint64]int{}, map[uint64]int{}
		for _, v := range equal {
			sources[v.from.path]++
			targets[v.to.path]++
		}
		for _, v := range equal {
			if sources[v.from.path] == 1 && targets[v.to.path] == 1 {
				take(filePair{v.from.path, v.to.path})
			}
		}
	}
	return pairs
}

// leftIn is what is not joined in one file: entries, sorted by key and line.
type leftIn struct {
	path uint64
	name
	entries []entry
}

// name are the parts of a path that a file may keep when it moves.
type name struct{ base, parent, dir uint32 }

// entry is one piece of evidence without its path. Weak is what many a file may have: a message, or short code.
type entry struct {
	path, key uint64
	name
	line int32
	weak bool
}

// vote says how much of a former file is in a present one.
type vote struct {
	from, to *leftIn
	common   int
	// kinds is of how many kinds that is, strong that one of them is not weak; together is how many moved by the same
	// number of lines, and unmoved how many are on the same line.
	kinds, together, unmoved int
	strong                   bool
}

// compare puts the surest first: most in common, then the same name, the same directory, and the same places.
func (v vote) compare(w vote) int {
	return cmp.Or(
		cmp.Compare(w.common*v.total(), v.common*w.total()),
		first(v.from.base == v.to.base, w.from.base == w.to.base),
		first(v.from.dir == v.to.dir, w.from.dir == w.to.dir),
		first(v.from.parent == v.to.parent, w.from.parent == w.to.parent),
		cmp.Compare(w.together, v.together), cmp.Compare(w.unmoved, v.unmoved), cmp.Compare(w.common, v.common),
	)
}

func (v vote) total() int { return len(v.from.entries) + len(v.to.entries) }

func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// enough says whether two files have enough in common to be one that moved. A file that is still there can only have
// been split: then most of the new file must come from it.
func (v vote) enough(gone, renamed bool) bool {
	sameName := v.from.base == v.to.base
	// Weak evidence needs company: different pieces, or the same places, or the name.
	if !v.strong && v.kinds < 2 && v.together < 2 && !sameName && !renamed && (v.from.dir != v.to.dir || v.unmoved == 0) {
		return false
	}
	switch {
	case renamed:
		return true
	case gone:
		return 2*v.common >= len(v.from.entries) || sameName && 3*v.common >= len(v.from.entries)
	}
	return v.common >= 2 && 10*v.common >= 6*len(v.to.entries)
}

// votes are the pairs of files that are possible, the surest first.
func (m *matcher) votes() []vote {
	before, present := m.filesBefore(), map[uint64]bool{}
	for i := range m.results {
		present[m.results[i].Path] = true
	}
	targets := byFile(m.resultEntries(before))
	holders := newHolders(targets)
	var votes []vote
	for _, source := range byFile(m.knownEntries()) {
		gone := !present[source.path] && (m.options.LookedAt == nil || !m.options.LookedAt(source.path))
		for _, target := range holders.of(source) {
			if v := count(source, target); v.enough(gone, m.options.Renamed[source.path]) {
				votes = append(votes, v)
			}
		}
	}
	slices.SortFunc(votes, func(v, w vote) int {
		return cmp.Or(v.compare(w), cmp.Compare(v.from.path, w.from.path), cmp.Compare(v.to.path, w.to.path))
	})
	return votes
}

// knownEntries are the findings that are there but not joined, in files that the scan could look at.
func (m *matcher) knownEntries() (all []entry) {
	m.sweep()
	for _, k := range m.left.known {
		if known := &m.known[k]; known.Open && !m.options.Skipped[known.Path] {
			all = append(all, entryOf(&known.Evidence))
		}
	}
	return all
}

// resultEntries are the results that are not joined, in files that were not there before.
func (m *matcher) resultEntries(before map[uint64]bool) (all []entry) {
	for _, r := range m.left.results {
		if e := &m.results[r]; m.isNew(e.Path, before) {
			all = append(all, entryOf(e))
		}
	}
	return all
}

// entryOf is the strongest evidence without the path. Scanners make match-based ids of the path, too.
func entryOf(e *Evidence) entry {
	of := e.of(RungCode)
	if of == 0 {
		of = text(e)
	}
	return entry{path: e.Path, key: mix(e.Rule, of), name: name{e.Base, e.Parent, e.Dir}, line: e.Line, weak: !e.Specific}
}

func byFile(all []entry) []*leftIn {
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.key, b.key), cmp.Compare(a.line, b.line))
	})
	var list []*leftIn
	for rest := all; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].path == rest[0].path {
			n++
		}
		list = append(list, &leftIn{rest[0].path, rest[0].name, rest[:n:n]})
		rest = rest[n:]
	}
	return list
}

func sortedKeys[V any](all map[uint64]V) []uint64 {
	keys := make([]uint64, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
