package columns

import (
	"runtime"
	"slices"
	"sync"
)

// Filter selects findings. Fields that are nil match all.
type Filter struct {
	// Places reports for each place whether its findings match.
	Places []bool
	// Rules, Kinds and Attrs are the same for rules, for Facts and for each Attr.
	Rules []bool
	Kinds []bool
	Attrs *[Attrs]bool
	// Since and Until limit the time since which a finding is relevant, in microseconds, both inclusive; 0 is no limit.
	Since, Until int64
	// IDs are the ids of all findings that match, in ascending order, and Except of findings that do not.
	IDs, Except []int64
}

func (f *Filter) chooses(c *chunk, i int) bool {
	if !f.Places[c.place[i]] || f.Kinds != nil && !f.Kinds[c.kind[i]] || f.Attrs != nil && !f.Attrs[c.attr[i]] ||
		f.Rules != nil && !f.Rules[c.rule[i]] || f.Since != 0 && c.since[i] < f.Since || f.Until != 0 && c.since[i] > f.Until {
		return false
	}
	return true
}

// each passes the matching findings of a chunk to visit, the last one first.
func (f *Filter) each(c *chunk, visit func(i int)) {
	var except []bool
	if len(f.Except) > 0 {
		except = make([]bool, c.len())
		c.positions(f.Except, func(i int) { except[i] = true })
	}
	one := func(i int) {
		if f.chooses(c, i) && (except == nil || !except[i]) {
			visit(i)
		}
	}
	if f.IDs != nil {
		c.positions(f.IDs, one)
		return
	}
	for i := len(c.id) - 1; i >= 0; i-- {
		one(i)
	}
}

// positions passes the positions of the ids that a chunk has, the last one first. The ids are in ascending order.
func (c *chunk) positions(ids []int64, visit func(i int)) {
	first, _ := slices.BinarySearch(ids, c.idOf(0))
	end, _ := slices.BinarySearch(ids, c.idOf(c.len()-1)+1)
	for _, id := range slices.Backward(ids[first:end]) {
		if i, found := slices.BinarySearch(c.id, uint32(id-c.base)); found {
			visit(i)
		}
	}
}

// Grouping assigns findings to groups: the sum of the tables' values for its place, rule and Attr; a nil table is 0. A
// negative sum excludes the finding.
type Grouping struct {
	Groups int
	Place  []int32
	Rule   []int32
	Attr   *[Attrs]int32
}

func (g *Grouping) of(c *chunk, i int) int32 {
	var n int32
	if g.Place != nil {
		n += g.Place[c.place[i]]
	}
	if g.Rule != nil {
		n += g.Rule[c.rule[i]]
	}
	if g.Attr != nil {
		n += g.Attr[c.attr[i]]
	}
	return n
}

// fold passes each matching finding to add, the newest first: the first ones of a list are then soon known, and the
// others are rejected at once. The chunks are divided among processors, each with its own result; merge
// combines them.
func fold[A any](s *Snapshot, f *Filter, start func() A, add func(into A, c *chunk, i int), merge func(into, from A) A) A {
	workers := min(runtime.GOMAXPROCS(0), 4, 1+len(s.chunks)/8)
	results := make([]A, workers)
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			result := start()
			for n := len(s.chunks) - 1 - w; n >= 0; n -= workers {
				c := s.chunks[n]
				f.each(c, func(i int) { add(result, c, i) })
			}
			results[w] = result
		})
	}
	running.Wait()
	for _, from := range results[1:] {
		results[0] = merge(results[0], from)
	}
	return results[0]
}

func sum(into, from []int32) []int32 {
	for i, n := range from {
		into[i] += n
	}
	return into
}

// maxTime is the end time of an open interval.
const maxTime = ^uint32(0)

// openTimes yields the times during which a finding was open: from (inclusive) to (exclusive).
func (c *chunk) openTimes(i int, yield func(from, to uint32)) {
	at, status := c.history(i)
	open, from := false, uint32(0)
	for j, s := range status {
		if s.Open() == open {
			continue
		}
		if open = !open; open {
			from = at[j]
		} else {
			yield(from, at[j])
		}
	}
	if open {
		yield(from, maxTime)
	}
}

const day = 24 * 60 * 60

// timeline finds the first of ascending times that is after another.
type timeline struct {
	ends    []uint32
	base    uint32  // day of ends[0]
	last    uint32  // last end
	firstOf []int32 // by day since base
}

func newTimeline(ends []uint32) *timeline {
	t := &timeline{ends: ends, base: ends[0] / day, last: ends[len(ends)-1]}
	first := 0
	for d := ends[0] / day; d <= ends[len(ends)-1]/day; d++ {
		for ends[first] < d*day {
			first++
		}
		t.firstOf = append(t.firstOf, int32(first))
	}
	return t
}

// after returns the index of the first end after at; the number of ends if there is none.
func (t *timeline) after(at uint32) int {
	if at < t.ends[0] {
		return 0
	}
	if at >= t.last {
		return len(t.ends)
	}
	n := int(t.firstOf[at/day-t.base])
	for t.ends[n] <= at {
		n++
	}
	return n
}
