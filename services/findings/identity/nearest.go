package identity

// maxCells bounds the table of nearest.
const maxCells = 1 << 16

// nearest pairs all of the shorter list with some of the longer one. It keeps the order of both sorted lists and
// minimizes the sum of distances. Long lists are paired on equal lines first, and greedily after that.
func nearest(left, right []location) []indexPair {
	if len(left) > len(right) {
		all := nearest(right, left)
		for i, c := range all {
			all[i] = indexPair{c.right, c.left}
		}
		return all
	}
	n, spare := len(left), len(right)-len(left)+1
	if n*spare > maxCells {
		return nearestOfMany(left, right)
	}
	// cost[i*spare+j] is the least cost of pairing the first i of left, with the i-th paired with one of the first i+j of
	// right.
	cost := make([]int64, (n+1)*spare)
	for i := 1; i <= n; i++ {
		for j := range spare {
			with := cost[(i-1)*spare+j] + halfLines(left[i-1], right[i-1+j])
			if j > 0 && cost[i*spare+j-1] <= with {
				with = cost[i*spare+j-1]
			}
			cost[i*spare+j] = with
		}
	}
	all := make([]indexPair, n)
	j := spare - 1
	for i := n; i > 0; i-- {
		for j > 0 && cost[i*spare+j] == cost[i*spare+j-1] {
			j--
		}
		all[i-1] = indexPair{i - 1, i - 1 + j}
	}
	return all
}

// halfLines is a distance in half lines: another column of the same line counts as one.
func halfLines(a, b location) int64 {
	d := 2 * distance(a.line, b.line)
	if a.column != b.column {
		d++
	}
	return d
}

// nearestOfMany pairs equal lines first. Then it pairs each remaining entry of left with the nearest remaining entry of
// right that leaves enough for the others.
func nearestOfMany(left, right []location) []indexPair {
	var all []indexPair
	var restLeft, restRight []int
	i, j := 0, 0
	for i < len(left) && j < len(right) {
		switch {
		case left[i].line == right[j].line:
			all = append(all, indexPair{i, j})
			i, j = i+1, j+1
		case left[i].line < right[j].line:
			restLeft = append(restLeft, i)
			i++
		default:
			restRight = append(restRight, j)
			j++
		}
	}
	for ; i < len(left); i++ {
		restLeft = append(restLeft, i)
	}
	for ; j < len(right); j++ {
		restRight = append(restRight, j)
	}
	next := 0
	for n, i := range restLeft {
		last := len(restRight) - (len(restLeft) - n)
		for next < last && halfLines(left[i], right[restRight[next+1]]) < halfLines(left[i], right[restRight[next]]) {
			next++
		}
		all = append(all, indexPair{i, restRight[next]})
		next++
	}
	return all
}
