package columns

import (
	"cmp"
	"math"
	"slices"
)

// Key is the position of a finding in a list.
type Key struct {
	Rank      int32
	Since, ID int64
}

// Order orders findings by rank: the sum of the tables' values for its place, rule and kind, where a nil table is 0.
// Findings of one rank are ordered by time and id.
type Order struct {
	Place, Rule, Kind []int32
	// OldestFirst orders findings of one rank by ascending time; else the newest is first.
	OldestFirst bool
	// After leaves out the findings up to this position, and Skip as many after it.
	After *Key
	Skip  int
}

func (o *Order) key(c *chunk, i int) Key {
	key := Key{Since: c.since[i], ID: c.idOf(i)}
	if o.Place != nil {
		key.Rank += o.Place[c.place[i]]
	}
	if o.Rule != nil {
		key.Rank += o.Rule[c.rule[i]]
	}
	if o.Kind != nil {
		key.Rank += o.Kind[c.kind[i]]
	}
	return key
}

func (o *Order) compare(a, b Key) int {
	if n := cmp.Compare(a.Rank, b.Rank); n != 0 {
		return n
	}
	n := cmp.Compare(b.Since, a.Since)
	if n == 0 {
		n = cmp.Compare(b.ID, a.ID)
	}
	if o.OldestFirst {
		return -n
	}
	return n
}

// part holds the keys of an order between two bounds. Without bounds it keeps up to twice as many as are wanted, so
// that it sorts rarely.
type part struct {
	keys   []Key
	last   *Key // no key after it is wanted
	before int  // keys up to the lower bound
}

func (p *part) trim(o *Order, n int) {
	if len(p.keys) >= n {
		o.partition(p.keys, n-1)
		p.keys = p.keys[:n]
		last := p.keys[n-1]
		p.last = &last
	}
}

// partition moves the n-th key of the order to index n, and the keys before it in front of it (quickselect). A jump
// far into a list needs no sorting of what it skips.
func (o *Order) partition(keys []Key, n int) {
	for low, high := 0, len(keys)-1; low < high; {
		pivot := keys[low+(high-low)/2]
		i, j := low, high
		for i <= j {
			for o.compare(keys[i], pivot) < 0 {
				i++
			}
			for o.compare(keys[j], pivot) > 0 {
				j--
			}
			if i <= j {
				keys[i], keys[j] = keys[j], keys[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case n <= j:
			high = j
		case n >= i:
			low = i
		default:
			return
		}
	}
}

// First returns the first n matching findings of an order. A jump far into it collects only the findings near the ones
// that it returns, and counts those before them.
func (s *Snapshot) First(f *Filter, o *Order, n int) []Key {
	if o.Skip >= farJump {
		low, high := s.bounds(f, o, n)
		if keys, enclosed := s.between(f, o, low, high, n); enclosed {
			return keys
		} // the sample was misleading
	}
	keys, _ := s.between(f, o, nil, nil, n)
	return keys
}

// between is First between two bounds, where nil is none. enclosed is false if the bounds leave out some of the n
// findings.
func (s *Snapshot) between(f *Filter, o *Order, low, high *Key, n int) (keys []Key, enclosed bool) {
	end := n + o.Skip
	found := fold(s, f, func() *part { return &part{last: high} }, func(p *part, c *chunk, i int) {
		key := o.key(c, i)
		switch {
		case o.After != nil && o.compare(key, *o.After) <= 0 || p.last != nil && o.compare(key, *p.last) >= 0:
			return
		case low != nil && o.compare(key, *low) < 0:
			p.before++
			return
		}
		if p.keys = append(p.keys, key); len(p.keys) >= 2*end+100 {
			p.trim(o, end)
		}
	}, func(into, from *part) *part {
		into.keys, into.before = append(into.keys, from.keys...), into.before+from.before
		return into
	})
	skip := o.Skip - found.before
	if skip < 0 || high != nil && skip+n > len(found.keys) {
		return nil, false
	}
	found.trim(o, skip+n)
	if skip >= len(found.keys) {
		return nil, true
	}
	if skip > 0 {
		o.partition(found.keys, skip)
	}
	keys = slices.Clone(found.keys[skip:]) // lets go of the skipped ones
	slices.SortFunc(keys, o.compare)
	return keys, true
}

const (
	// farJump is the number of skipped findings from which on a sample pays.
	farJump = 5_000
	// sampled is the distance of the findings in a sample.
	sampled = 64
)

// bounds returns keys that very probably enclose the n findings after the skipped ones, from a sample of the list.
func (s *Snapshot) bounds(f *Filter, o *Order, n int) (low, high *Key) {
	sample := fold(s, f, func() *part { return &part{} }, func(p *part, c *chunk, i int) {
		if o.After != nil && o.compare(o.key(c, i), *o.After) <= 0 {
			return
		}
		if p.before++; p.before%sampled == 0 {
			p.keys = append(p.keys, o.key(c, i))
		}
	}, func(into, from *part) *part {
		into.keys = append(into.keys, from.keys...)
		return into
	}).keys
	slices.SortFunc(sample, o.compare)
	at := func(place, deviations float64) int {
		return int(place/sampled + deviations*(2+math.Sqrt(place/sampled)))
	}
	if i := at(float64(o.Skip), -4); i >= 0 && i < len(sample) {
		low = &sample[i]
	}
	if i := at(float64(o.Skip+n), 4); i < len(sample) {
		high = &sample[i]
	}
	return low, high
}

// Numbers are numbers of findings by the number of their place, rule and kind.
type Numbers struct{ Places, Rules, Kinds []int32 }

// Count counts the matching findings.
func (s *Snapshot) Count(f *Filter) *Numbers {
	return fold(s, f, func() *Numbers {
		return &Numbers{make([]int32, len(s.places)), make([]int32, len(s.rules)), make([]int32, len(s.kinds))}
	}, func(n *Numbers, c *chunk, i int) {
		n.Places[c.place[i]]++
		n.Rules[c.rule[i]]++
		n.Kinds[c.kind[i]]++
	}, func(into, from *Numbers) *Numbers {
		sum(into.Places, from.Places)
		sum(into.Rules, from.Rules)
		sum(into.Kinds, from.Kinds)
		return into
	})
}

// Group are the findings of a rule or of a place.
type Group struct {
	Severities [5]int32 // their numbers, from 0 (unknown) to 4 (critical)
	types      uint8
}

// Has reports whether a finding of the group has an issue type.
func (g Group) Has(word string) bool { return g.types&(1<<issueType.number(word)) != 0 }

// Add adds the findings of another group.
func (g *Group) Add(other Group) {
	g.types |= other.types
	for severity, n := range other.Severities {
		g.Severities[severity] += n
	}
}

// ByRule groups the matching findings by rule.
func (s *Snapshot) ByRule(f *Filter) []Group {
	return s.group(f, len(s.rules), func(c *chunk, i int) uint32 { return c.rule[i] })
}

// ByPlace groups the matching findings by place.
func (s *Snapshot) ByPlace(f *Filter) []Group {
	return s.group(f, len(s.places), func(c *chunk, i int) uint32 { return c.place[i] })
}

func (s *Snapshot) group(f *Filter, n int, of func(c *chunk, i int) uint32) []Group {
	return fold(s, f, func() []Group { return make([]Group, n) }, func(groups []Group, c *chunk, i int) {
		g := &groups[of(c, i)]
		g.Severities[min(c.attr[i].Severity(), 4)]++
		g.types |= 1 << (c.attr[i] & (1<<issueType.bits - 1))
	}, func(into, from []Group) []Group {
		for i, other := range from {
			into[i].Add(other)
		}
		return into
	})
}
