package identity

import (
	"cmp"
	"slices"
)

// filePair is the former and the present path of a file.
type filePair struct{ from, to uint64 }

// filePairs returns the files that moved: proved by equal contents, or inferred from common evidence. A file is the
// source of at most one pair, and the target of at most one.
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
		// Among equally good votes, only votes without a rival for one of their files count.
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

// fileEntries has the unmatched evidence of one file, sorted by key and line.
type fileEntries struct {
	path uint64
	name
	entries []entry
}

// name has the parts of a path that a file may keep when it moves.
type name struct{ base, parent, dir uint32 }

// entry is one piece of evidence without its path. Weak evidence is a message or short code, which many files may have.
type entry struct {
	path, key uint64
	name
	line int32
	weak bool
}

// vote counts the evidence that a former and a present file have in common.
type vote struct {
	from, to *fileEntries
	common   int
	// kinds is the number of different common pieces. strong says that one of them is not weak. together is the largest
	// number that moved by the same number of lines, unmoved the number that are on the same line.
	kinds, together, unmoved int
	strong                   bool
}

// compare orders votes, the most certain first: most in common, then the same name, directory, parent, and locations.
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

// enough reports whether two files have enough in common to be one file that moved. A file that still exists can only
// have been split: then most of the new file must come from it.
func (v vote) enough(gone, renamed bool) bool {
	sameName := v.from.base == v.to.base
	// Weak evidence needs support: different pieces, equal shifts, unmoved lines, or the same name.
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

// votes returns the possible pairs of files, the most certain first.
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

// knownEntries returns the unmatched open findings in files that the scan could read.
func (m *matcher) knownEntries() (all []entry) {
	m.dropJoined()
	for _, k := range m.unmatched.known {
		if known := &m.known[k]; known.Open && !m.options.Skipped[known.Path] {
			all = append(all, entryOf(&known.Evidence))
		}
	}
	return all
}

// resultEntries returns the unmatched results in files that did not exist before.
func (m *matcher) resultEntries(before map[uint64]bool) (all []entry) {
	for _, r := range m.unmatched.results {
		if e := &m.results[r]; m.isNew(e.Path, before) {
			all = append(all, entryOf(e))
		}
	}
	return all
}

// entryOf returns the strongest evidence without the path. Match-based ids are unsuitable, because scanners include the
// path in them.
func entryOf(e *Evidence) entry {
	of := e.of(RungCode)
	if of == 0 {
		of = text(e)
	}
	return entry{path: e.Path, key: mix(e.Rule, of), name: name{e.Base, e.Parent, e.Dir}, line: e.Line, weak: !e.Specific}
}

func byFile(all []entry) []*fileEntries {
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.key, b.key), cmp.Compare(a.line, b.line))
	})
	var list []*fileEntries
	for rest := all; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].path == rest[0].path {
			n++
		}
		list = append(list, &fileEntries{rest[0].path, rest[0].name, rest[:n:n]})
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
