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
// It is telling if the rule has several messages, and this one was in only one file.
type entry struct {
	path, key uint64
	name
	line, column  int32
	weak, telling bool
}

// vote counts the evidence that a former and a present file have in common.
type vote struct {
	from, to *fileEntries
	common   int
	// telling is the number of different common pieces that are telling. strong says that one piece is not weak. together
	// is the largest number of pieces, and spread of lines, that moved by the same number of lines. unmoved is the number
	// of pieces that are on the same line, exact of those also in the same column but the first.
	telling, together, spread, unmoved, exact int
	strong                                    bool
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

// minSpread is the number of lines that have to move together if the messages of two files say nothing about the file.
const minSpread = 5

// supported reports whether the common evidence is more than a coincidence. Many tools have one message for all places
// of a rule, so that two files with the same problems have everything in common. replaced says that the scans listed
// their files, so that the former file is gone and the present one is new.
func (v vote) supported(replaced bool) bool {
	sameName, sameDir := v.from.base == v.to.base, v.from.dir == v.to.dir
	switch {
	case v.strong, v.telling >= 2:
		return true
	case v.telling == 1 && (sameName || sameDir || v.together >= 2):
		return true
	case replaced && (v.unmoved > 0 || v.together >= 2):
		return sameName || sameDir
	case 2*v.common < v.total(): // one of the files has more problems
		return false
	}
	return v.spread >= minSpread || v.exact > 0 && v.unmoved >= v.common && (sameName || sameDir)
}

// enough reports whether two files have enough in common to be one file that moved. A file that still exists can only
// have been split: then most of the new file must come from it.
func (v vote) enough(gone, renamed, replaced bool) bool {
	sameName := v.from.base == v.to.base
	switch {
	case renamed:
		return true
	case !v.supported(replaced):
		return false
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
	telling := m.telling()
	targets := byFile(m.resultEntries(before, telling))
	holders := newHolders(targets)
	var votes []vote
	for _, source := range byFile(m.knownEntries(telling)) {
		gone := !present[source.path] && (m.options.LookedAt == nil || !m.options.LookedAt(source.path))
		replaced := gone && m.options.LookedAt != nil && m.options.NewFile != nil // targets are new files
		for _, target := range holders.of(source) {
			if v := count(source, target); v.enough(gone, m.options.Renamed[source.path], replaced) {
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
func (m *matcher) knownEntries(telling func(*Evidence) bool) (all []entry) {
	m.dropJoined()
	for _, k := range m.unmatched.known {
		if known := &m.known[k]; known.Open && !m.options.Skipped[known.Path] {
			all = append(all, entryOf(&known.Evidence, telling))
		}
	}
	return all
}

// resultEntries returns the unmatched results in files that did not exist before.
func (m *matcher) resultEntries(before map[uint64]bool, telling func(*Evidence) bool) (all []entry) {
	for _, r := range m.unmatched.results {
		if e := &m.results[r]; m.isNew(e.Path, before) {
			all = append(all, entryOf(e, telling))
		}
	}
	return all
}

// entryOf returns the strongest evidence without the path. Match-based ids are unsuitable, because scanners include the
// path in them. Fingerprints have to be equal, and then they are strong.
func entryOf(e *Evidence, telling func(*Evidence) bool) entry {
	of := e.of(RungCode)
	if of == 0 {
		of = text(e)
	}
	key, printed := mix(e.Rule, of), e.Prints != [maxPrints]mark{}
	if printed {
		key = mix(key, e.Prints[0], e.Prints[1], e.Prints[2], e.Prints[3])
	}
	return entry{
		path: e.Path, key: key, name: name{e.Base, e.Parent, e.Dir}, line: e.Line, column: e.Column, weak: !e.Specific && !printed, telling: telling(e),
	}
}

// telling returns a function that reports whether the text of a result says something about its file: the rule has
// other texts too, and no two files had or have this one.
func (m *matcher) telling() func(*Evidence) bool {
	texts := map[uint64]uint64{}          // by rule
	several := map[uint64]bool{}          // rules with several texts
	files := [2]map[uint64]uint64{{}, {}} // by rule and text: the only file; 0 for several
	note := func(e *Evidence, side int) {
		of := text(e)
		if known, seen := texts[e.Rule]; !seen {
			texts[e.Rule] = of
		} else if known != of {
			several[e.Rule] = true
		}
		key := mix(e.Rule, of)
		if file, seen := files[side][key]; !seen {
			files[side][key] = e.Path
		} else if file != e.Path {
			files[side][key] = 0
		}
	}
	for k := range m.known {
		if m.known[k].Open {
			note(&m.known[k].Evidence, sideKnown)
		}
	}
	for r := range m.results {
		note(&m.results[r], sideResults)
	}
	return func(e *Evidence) bool {
		if !several[e.Rule] {
			return false
		}
		for _, only := range files {
			if file, seen := only[mix(e.Rule, text(e))]; seen && file == 0 {
				return false
			}
		}
		return true
	}
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
