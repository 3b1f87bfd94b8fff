package identity

import "math/bits"

// The costs of an alignment. One place with many edited lines counts as likely as several places with few.
const (
	editCost   = 500  // lines were inserted or deleted at one place
	doubleCost = 150  // per doubling of the number of lines
	columnCost = 1000 // the column differs
	goneCost   = 640  // results came or went, although no line did
	splitCost  = 300  // lines were inserted or deleted between results of one line
	maxLines   = 20   // between equally likely alignments the one with fewer lines wins, up to this number
)

// maxSteps bounds the work of parsimony per member of a group, so that all groups of a report together take linear
// time.
const maxSteps = 512

// parsimony pairs all of the shorter list with some of the longer one. It keeps the order of both sorted lists and
// chooses the pairs that need the fewest edits: inserted or deleted lines change the distance between neighbours, and
// results come or go. The lists lie between two anchors. The beginning of the file is an anchor; its end is not known.
// Long lists are paired by distance.
func parsimony(known, results []location, above anchor, below *anchor) []indexPair {
	if len(known) == 0 || len(results) == 0 {
		return nil
	}
	p := alignment{short: known, long: results, first: anchorLines{above.before, above.after}}
	if below != nil {
		p.last = &anchorLines{below.before, below.after}
	}
	swap := len(known) > len(results)
	if swap {
		p.short, p.long = results, known
		p.first = anchorLines{above.after, above.before}
		if below != nil {
			p.last = &anchorLines{below.after, below.before}
		}
	}
	spare := len(p.long) - len(p.short) + 1
	if len(p.short)*spare*spare > maxSteps*(len(p.short)+len(p.long)) {
		shifted := make([]location, len(known))
		for i, k := range known {
			shifted[i] = location{k.line + above.after - above.before, k.column}
		}
		return nearest(shifted, results)
	}
	all := p.solve()
	if swap {
		for i, c := range all {
			all[i] = indexPair{c.right, c.left}
		}
	}
	return all
}

// anchorLines has the lines of an anchor in the shorter and the longer list.
type anchorLines struct{ short, long int32 }

type alignment struct {
	short, long []location
	first       anchorLines
	last        *anchorLines
}

// solve fills a table by dynamic programming. cost[i*spare+d] is the least cost for the first i+1 entries of the
// shorter list, with the last of them paired with entry i+d of the longer list.
func (p alignment) solve() []indexPair {
	n, spare := len(p.short), len(p.long)-len(p.short)+1
	cost, from := make([]int32, n*spare), make([]int32, n*spare)
	for i, s := range p.short {
		for d := range spare {
			l := p.long[i+d]
			here := int32(0)
			if s.column != l.column {
				here = columnCost
			}
			if i == 0 {
				cost[d] = here + step(d, more(l.line, p.first.long, s.line, p.first.short))
				continue
			}
			best := int32(-1)
			for e := 0; e <= d; e++ {
				s0, l0 := p.short[i-1], p.long[i-1+e]
				way := cost[(i-1)*spare+e] + step(d-e, more(l.line, l0.line, s.line, s0.line)) + split(s, s0, l, l0)
				if best < 0 || way < best {
					best, from[i*spare+d] = way, int32(e)
				}
			}
			cost[i*spare+d] = here + best
		}
	}
	best, at := int32(-1), 0
	for d := range spare {
		way := cost[(n-1)*spare+d] + p.end(spare-1-d, p.short[n-1].line, p.long[n-1+d].line)
		if best < 0 || way < best {
			best, at = way, d
		}
	}
	all := make([]indexPair, n)
	for i := n - 1; i >= 0; i-- {
		all[i] = indexPair{i, i + at}
		at = int(from[i*spare+at])
	}
	return all
}

// step is the cost of going from one pair to the next. skipped entries of the longer list lie between, and the distance
// in the longer list is larger by more lines.
func step(skipped int, more int64) int32 {
	cost := int32(0)
	if more != 0 {
		lines := max(more, -more)
		cost = editCost + doubleCost*int32(bits.Len64(uint64(lines))) + int32(min(lines, maxLines))
	}
	if skipped > 0 && more <= 0 { // inserted lines explain additional results
		cost += goneCost
	}
	return cost
}

// split is the cost of having results of one line on two lines.
func split(short, shortBefore, long, longBefore location) int32 {
	if (short.line == shortBefore.line) != (long.line == longBefore.line) {
		return splitCost
	}
	return 0
}

// end is the cost of the last step: to the next anchor, or to the end of the file.
func (p alignment) end(skipped int, short, long int32) int32 {
	switch {
	case p.last != nil:
		return step(skipped, more(p.last.long, long, p.last.short, short))
	case skipped > 0:
		return goneCost
	}
	return 0
}

func distance(a, b int32) int64 {
	if a > b {
		return int64(a) - int64(b)
	}
	return int64(b) - int64(a)
}

// more returns by how many lines the distance between two entries is larger in the longer list than in the shorter
// list.
func more(long, longBefore, short, shortBefore int32) int64 {
	return int64(long) - int64(longBefore) - int64(short) + int64(shortBefore)
}
