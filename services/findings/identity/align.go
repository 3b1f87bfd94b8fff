package identity

import (
	"cmp"
	"slices"
)

// filePair is a file before and after: the same one, unless it moved.
type filePair struct{ from, to uint64 }

// anchor is a pair that is certain: line before, line after.
type anchor struct{ before, after int32 }

// lookForAnchors collects the certain pairs of all files.
func (m *matcher) lookForAnchors() {
	m.anchors = map[filePair][]anchor{}
	for r, j := range m.joins {
		if j.Known < 0 {
			continue
		}
		k, e := m.known[j.Known].Evidence, m.results[r]
		pair := filePair{k.Path, e.Path}
		m.anchors[pair] = append(m.anchors[pair], anchor{k.Line, e.Line})
	}
	for _, all := range m.anchors {
		slices.SortFunc(all, func(a, b anchor) int { return cmp.Or(cmp.Compare(a.before, b.before), cmp.Compare(a.after, b.after)) })
	}
}

// place is a line and, where lines are equal, a column.
type place = int64

const columnBits = 12

func placeOf(m member) place { return at(m.line, m.column) }

func at(line, column int32) place {
	return int64(line)<<columnBits | int64(min(max(column, 0), 1<<columnBits-1))
}

func places(members []member) []place {
	all := make([]place, len(members))
	for i, m := range members {
		all[i] = placeOf(m)
	}
	return all
}

func distance(a, b place) int64 {
	if a > b {
		return a - b
	}
	return b - a
}

// expect is where the findings should be now: where the anchors of their file say, unless one more shift of all of them brings
// them nearer to the results. That is so where something was inserted between an anchor and them. Known is false for a file
// without anchors.
func (m *matcher) expect(findings, results []member) (expected []place, known bool) {
	pair := filePair{m.known[findings[0].index].Path, m.results[results[0].index].Path}
	expected = places(findings)
	anchors := m.anchorsOf(pair)
	for i, f := range findings {
		if len(anchors) > 0 {
			expected[i] = at(f.line+shiftAt(anchors, f.line), f.column)
		}
	}
	if min(len(findings), len(results)) > 1 {
		shift := commonShift(expected, places(results))
		for i := range expected {
			expected[i] += shift
		}
	}
	return expected, len(anchors) > 0
}

func (m *matcher) anchorsOf(pair filePair) []anchor {
	if m.anchors == nil {
		m.lookForAnchors()
	}
	return m.anchors[pair]
}

// shiftAt is by how much the nearest anchor of a line has moved.
func shiftAt(anchors []anchor, line int32) int32 {
	after, exact := slices.BinarySearchFunc(anchors, line, func(a anchor, line int32) int { return cmp.Compare(a.before, line) })
	switch {
	case exact || after == 0:
	case after == len(anchors), line-anchors[after-1].before <= anchors[after].before-line:
		after--
	}
	return anchors[after].after - anchors[after].before
}

// maxShifts bounds the shifts that are tried.
const maxShifts = 64

// commonShift is the shift by whole lines that brings places nearest to others; the smallest of equally good ones.
func commonShift(from, to []place) (best place) {
	if len(from) > maxShifts || len(to) > maxShifts {
		return 0
	}
	tried := map[place]struct{}{}
	bestCost := int64(-1)
	for _, f := range from {
		for _, t := range to {
			shift := (t>>columnBits - f>>columnBits) << columnBits
			if _, again := tried[shift]; again || len(tried) > maxShifts {
				continue
			}
			tried[shift] = struct{}{}
			shifted := slices.Clone(from)
			for i := range shifted {
				shifted[i] += shift
			}
			cost := costOf(shifted, to, nearestInOrder(shifted, to))
			if bestCost < 0 || cost < bestCost || cost == bestCost && distance(shift, 0) < distance(best, 0) {
				best, bestCost = shift, cost
			}
		}
	}
	return best
}

func costOf(left, right []place, couples []couple) (cost int64) {
	for _, c := range couples {
		cost += distance(left[c.left], right[c.right])
	}
	return cost
}

// How sure a way to join must be where no anchor tells (see clear), in lines.
const (
	clearDistance = 30
	clearMargin   = 3
)

// clear reports whether couples are the only good way: they are near, and without any of them all would be farther.
func clear(left, right []place, couples []couple) bool {
	cost := costOf(left, right, couples)
	if cost == 0 {
		return true // just where they were
	}
	if cost>>columnBits > clearDistance*int64(len(couples)) || len(couples) > maxShifts || max(len(left), len(right)) > 4*maxShifts {
		return false
	}
	for _, c := range couples {
		// As if one side of the couple were not there.
		longer, without := right, c.right
		if len(left) > len(right) {
			longer, without = left, c.left
		}
		others := slices.Delete(slices.Clone(longer), without, without+1)
		l, r := left, others
		if len(left) > len(right) {
			l, r = others, right
		}
		if other := costOf(l, r, nearestInOrder(l, r)); (other-cost)>>columnBits < clearMargin {
			return false
		}
	}
	return true
}

// couple is a pair of indexes.
type couple struct{ left, right int }

// maxCells bounds the table of nearestInOrder (about 16 MB).
const maxCells = 2 << 20

// nearestInOrder pairs all of the shorter list with some of the longer one, keeping the order of both (sorted) lists, such that
// the sum of distances is least. Very long lists are paired greedily.
func nearestInOrder(left, right []place) []couple {
	if len(left) > len(right) {
		couples := nearestInOrder(right, left)
		for i, c := range couples {
			couples[i] = couple{c.right, c.left}
		}
		return couples
	}
	// cost[i][j]: the first i of left are paired, the i-th with one of the first i+j of right.
	n, spare := len(left), len(right)-len(left)
	if n*(spare+1) > maxCells {
		return greedy(left, right)
	}
	width := spare + 1
	cost := make([]int64, (n+1)*width)
	for i := 1; i <= n; i++ {
		for j := range width {
			with := cost[(i-1)*width+j] + distance(left[i-1], right[i-1+j])
			if j > 0 && cost[i*width+j-1] <= with {
				with = cost[i*width+j-1]
			}
			cost[i*width+j] = with
		}
	}
	couples := make([]couple, n)
	j := spare
	for i := n; i > 0; i-- {
		for j > 0 && cost[i*width+j] == cost[i*width+j-1] {
			j--
		}
		couples[i-1] = couple{i - 1, i - 1 + j}
	}
	return couples
}

// greedy takes for each of left the nearest of right that leaves enough for the rest.
func greedy(left, right []place) []couple {
	couples := make([]couple, 0, len(left))
	next := 0
	for i, line := range left {
		last := len(right) - (len(left) - i)
		for next < last && distance(right[next+1], line) < distance(right[next], line) {
			next++
		}
		couples = append(couples, couple{i, next})
		next++
	}
	return couples
}
