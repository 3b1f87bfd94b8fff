package identity

import (
	"cmp"
	"slices"
)

// maxHolders is the number of new files that may share evidence before it counts only between files of the same name.
const maxHolders = 16

// holders indexes the new files by their evidence.
type holders struct {
	all []holder
}

type holder struct {
	key  uint64
	file *fileEntries
}

func newHolders(targets []*fileEntries) holders {
	var h holders
	for _, target := range targets {
		for i, e := range target.entries {
			if i == 0 || e.key != target.entries[i-1].key {
				h.all = append(h.all, holder{e.key, target})
			}
		}
	}
	slices.SortFunc(h.all, compareHolders)
	return h
}

func compareHolders(a, b holder) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	return cmp.Or(cmp.Compare(a.file.base, b.file.base), cmp.Compare(a.file.path, b.file.path))
}

// of returns the new files that share evidence with a former one, sorted by path.
func (h holders) of(source *fileEntries) (targets []*fileEntries) {
	for i, e := range source.entries {
		if i > 0 && e.key == source.entries[i-1].key {
			continue
		}
		for _, has := range h.having(e.key, source.base) {
			targets = append(targets, has.file)
		}
	}
	slices.SortFunc(targets, func(a, b *fileEntries) int { return cmp.Compare(a.path, b.path) })
	return slices.Compact(targets)
}

func (h holders) having(key uint64, base uint32) []holder {
	first, _ := slices.BinarySearchFunc(h.all, key, func(h holder, key uint64) int { return cmp.Compare(h.key, key) })
	last := first
	for last < len(h.all) && h.all[last].key == key && last-first <= maxHolders {
		last++
	}
	if last-first <= maxHolders {
		return h.all[first:last]
	}
	type named struct {
		key  uint64
		base uint32
	}
	first, _ = slices.BinarySearchFunc(h.all, named{key, base}, func(h holder, n named) int {
		return cmp.Or(cmp.Compare(h.key, n.key), cmp.Compare(h.file.base, n.base))
	})
	last = first
	for last < len(h.all) && h.all[last].key == key && h.all[last].file.base == base && last-first <= maxHolders {
		last++
	}
	if last-first > maxHolders {
		return nil
	}
	return h.all[first:last]
}

// maxCompared bounds how many equal entries of a file are compared by line.
const maxCompared = 8

// count compares the unmatched evidence of two files.
func count(from, to *fileEntries) vote {
	v := vote{from: from, to: to}
	shifts := map[int32]map[int32]int{} // by number of lines: how many pieces by line
	a, b := from.entries, to.entries
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].key < b[0].key:
			_, a = sameEntries(a)
		case a[0].key > b[0].key:
			_, b = sameEntries(b)
		default:
			var x, y []entry
			x, a = sameEntries(a)
			y, b = sameEntries(b)
			v.common += min(len(x), len(y))
			if x[0].telling {
				v.telling++
			}
			v.strong = v.strong || !x[0].weak
			for _, e := range x[:min(len(x), maxCompared)] {
				if e.column > 1 && slices.ContainsFunc(y[:min(len(y), maxCompared)], func(f entry) bool { return f.line == e.line && f.column == e.column }) {
					v.exact++
				}
				for _, f := range y[:min(len(y), maxCompared)] {
					if shifts[f.line-e.line] == nil {
						shifts[f.line-e.line] = map[int32]int{}
					}
					shifts[f.line-e.line][e.line]++
				}
			}
		}
	}
	for shift, lines := range shifts {
		pieces := 0
		for _, n := range lines {
			pieces += n
		}
		if shift == 0 {
			v.unmoved = pieces
		}
		v.together, v.spread = max(v.together, pieces), max(v.spread, len(lines))
	}
	return v
}

func sameEntries(all []entry) (same, rest []entry) {
	n := 1
	for n < len(all) && all[n].key == all[0].key {
		n++
	}
	return all[:n], all[n:]
}
