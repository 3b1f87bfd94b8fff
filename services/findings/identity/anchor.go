package identity

import (
	"cmp"
	"slices"
)

// anchor is a certain pair of lines: the line of a finding and the line of its result.
type anchor struct {
	files         uint64 // the former and the present file
	before, after int32
	// main marks a longest sequence of anchors that kept their order. Other anchors belong to code that was reordered.
	main bool
}

// files is the key of a former and a present file. Both are the same unless the file moved.
func files(from, to uint64) uint64 { return mix(from, to) }

// invalidateAnchors makes the next use of anchors collect them again, with the joins made since.
func (m *matcher) invalidateAnchors() { m.collected = false }

// anchorsOf returns the anchors of a file, sorted by the former line.
func (m *matcher) anchorsOf(from, to uint64) []anchor {
	if !m.collected {
		m.collectAnchors()
	}
	key := files(from, to)
	first, _ := slices.BinarySearchFunc(m.anchors, key, func(a anchor, key uint64) int { return cmp.Compare(a.files, key) })
	last := first
	for last < len(m.anchors) && m.anchors[last].files == key {
		last++
	}
	return m.anchors[first:last]
}

// collectAnchors collects the certain pairs of the files that have unmatched findings.
func (m *matcher) collectAnchors() {
	m.collected, m.anchors = true, m.anchors[:0]
	m.dropJoined()
	needed := map[uint64]struct{}{}
	for _, k := range m.unmatched.known {
		needed[m.known[k].Path] = struct{}{}
	}
	for r, j := range m.joins {
		if !m.certain[r] {
			continue
		}
		k, e := &m.known[j.Known], &m.results[r]
		if _, ok := needed[k.Path]; ok {
			m.anchors = append(m.anchors, anchor{files: files(k.Path, e.Path), before: k.Line, after: e.Line})
		}
	}
	slices.SortFunc(m.anchors, func(a, b anchor) int {
		if a.files != b.files {
			return cmp.Compare(a.files, b.files)
		}
		return cmp.Or(cmp.Compare(a.before, b.before), cmp.Compare(a.after, b.after))
	})
	m.anchors = slices.Compact(m.anchors)
	for rest := m.anchors; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].files == rest[0].files {
			n++
		}
		markMain(rest[:n])
		rest = rest[n:]
	}
}

// markMain marks a longest ascending subsequence of the anchors of a file.
func markMain(all []anchor) {
	var tails []int // by length - 1: the index of the smallest end
	before := make([]int, len(all))
	for i := range all {
		at, _ := slices.BinarySearchFunc(tails, all[i].after, func(t int, line int32) int {
			if all[t].after <= line {
				return -1
			}
			return 1
		})
		before[i] = -1
		if at > 0 {
			before[i] = tails[at-1]
		}
		if at == len(tails) {
			tails = append(tails, i)
		} else {
			tails[at] = i
		}
	}
	for i := tails[len(tails)-1]; i >= 0; i = before[i] {
		all[i].main = true
	}
}

// reordered reports whether some code changed its order.
func reordered(anchors []anchor) bool {
	return slices.ContainsFunc(anchors, func(a anchor) bool { return !a.main })
}

// expect returns the line where a finding should be now: its line, shifted like the nearest anchor. The line is solid
// if an anchor is on it, or if the anchors on both sides have the same shift. The beginning of the file counts as an
// anchor.
func expect(anchors []anchor, line int32) (expected int32, solid bool) {
	next, exact := slices.BinarySearchFunc(anchors, line, func(a anchor, line int32) int { return cmp.Compare(a.before, line) })
	if exact {
		return anchors[next].after, next+1 == len(anchors) || anchors[next+1].before != line
	}
	var above anchor
	if next > 0 {
		above = anchors[next-1]
	}
	shift := above.after - above.before
	if next == len(anchors) {
		return line + shift, false
	}
	below := anchors[next]
	other := below.after - below.before
	if shift == other {
		return line + shift, true
	}
	if next == 0 || below.before-line < line-above.before {
		shift = other
	}
	return line + shift, false
}
