package identity

import "math/bits"

// What explains the places of equal hits at the least cost. One place with many edited lines is as likely as several
// with few.
const (
	siteCost   = 500  // lines were inserted or deleted at one place
	doubleCost = 150  // twice as many lines were
	columnCost = 1000 // the column is another one
	goneCost   = 640  // hits came or went, although no line did
	tornCost   = 300  // lines were inserted or deleted between hits of one line
	maxLines   = 20   // of equally likely explanations that with fewer lines is taken, up to so many
)

// maxSteps bounds the work of parsimony for each hit of a group, so that all groups of a report together cost linear
// time.
const maxSteps = 512

// parsimony pairs all of the shorter list with some of the longer one, keeping the order of both sorted lists, such
// that the fewest edits explain it: where lines were inserted or deleted, the distance between neighbours changes, and
// hits come or go. The lists lie between two anchors; the beginning of the file is one, too, but its end is not known.
// Long lists are paired by nearness.
func parsimony(known, results []spot, above anchor, below *anchor) []couple {
	if len(known) == 0 || len(results) == 0 {
		return nil
	}
	p := puzzle{short: known, long: results, first: couples{above.before, above.after}}
	if below != nil {
		p.last = &couples{below.before, below.after}
	}
	swap := len(known) > len(results)
	if swap {
		p.short, p.long = results, known
		p.first = couples{above.after, above.before}
		if below != nil {
			p.last = &couples{below.after, below.before}
		}
	}
	spare := len(p.long) - len(p.short) + 1
	if len(p.short)*spare*spare > maxSteps*(len(p.short)+len(p.long)) {
		shifted := make([]spot, len(known))
		for i, k := range known {
			shifted[i] = spot{k.line + above.after - above.before, k.column}
		}
		return nearest(shifted, results)
	}
	all := p.solve()
	if swap {
		for i, c := range all {
			all[i] = couple{c.right, c.left}
		}
	}
	return all
}

// couples are the lines of an anchor in the shorter and the longer list.
type couples struct{ short, long int32 }

type puzzle struct {
	short, long []spot
	first       couples
	last        *couples
}

// solve fills a table: cost[i*spare+d] is the least for the first i+1 of the shorter list, the last of them paired with
// the i+d-th of the longer one.
func (p puzzle) solve() []couple {
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
				way := cost[(i-1)*spare+e] + step(d-e, more(l.line, l0.line, s.line, s0.line)) + torn(s, s0, l, l0)
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
	all := make([]couple, n)
	for i := n - 1; i >= 0; i-- {
		all[i] = couple{i, i + at}
		at = int(from[i*spare+at])
	}
	return all
}

// step is what it costs to go from one pair to the next, where so many of the longer list lie between, and the way in
// the longer list is more by so many lines.
func step(skipped int, more int64) int32 {
	cost := int32(0)
	if more != 0 {
		lines := max(more, -more)
		cost = siteCost + doubleCost*int32(bits.Len64(uint64(lines))) + int32(min(lines, maxLines))
	}
	if skipped > 0 && more <= 0 { // where lines were inserted, hits may have come with them
		cost += goneCost
	}
	return cost
}

// torn is what it costs that hits of one line are on two.
func torn(short, shortBefore, long, longBefore spot) int32 {
	if (short.line == shortBefore.line) != (long.line == longBefore.line) {
		return tornCost
	}
	return 0
}

// end is the last step: to the next anchor, or to the end of the file.
func (p puzzle) end(skipped int, short, long int32) int32 {
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

// more is by how many lines the way between two hits of the longer list is longer than that of the shorter one.
func more(long, longBefore, short, shortBefore int32) int64 {
	return int64(long) - int64(longBefore) - int64(short) + int64(shortBefore)
}
