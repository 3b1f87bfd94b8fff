package columns

import (
	"cmp"
	"slices"
)

// Record is a finding for a condition.
type Record struct {
	Attr   Attr
	at     []uint32
	status []Status
}

// StatusAt is the finding's status at a time.
func (r Record) StatusAt(end uint32) Status {
	for j := len(r.at) - 1; j >= 0; j-- {
		if r.at[j] < end {
			return r.status[j]
		}
	}
	return None
}

// Moved reports whether the finding moved in one of several ways between since (inclusive) and until (exclusive).
func (r Record) Moved(since, until uint32, ways func(Move) bool) bool {
	before := None
	for j, after := range r.status {
		move := moveOf(before, after)
		before = after
		if move != NoMove && r.at[j] >= since && r.at[j] < until && ways(move) {
			return true
		}
	}
	return false
}

// Appeared returns the outcome, at until, of a finding first found between since and until; ok is false for others.
func (r Record) Appeared(since, until uint32) (outcome Outcome, ok bool) {
	if len(r.at) == 0 || r.at[0] < since || r.at[0] >= until {
		return 0, false
	}
	return outcomeAt(r.Attr, r.at, r.status, until), true
}

// Selection holds the findings of a list.
type Selection struct {
	IDs      []int64 // newest first
	Products [Secrets + 1]int32
}

// Select lists the matching findings. condition is called concurrently.
func (s *Snapshot) Select(f *Filter, condition func(Record) bool) *Selection {
	list := fold(s, f, func() *Selection { return &Selection{} }, func(list *Selection, c *chunk, i int) {
		at, status := c.history(i)
		if condition(Record{c.attr[i], at, status}) {
			list.IDs = append(list.IDs, c.idOf(i))
			list.Products[c.attr[i].Product()]++
		}
	}, func(into, from *Selection) *Selection {
		into.IDs = append(into.IDs, from.IDs...)
		for i, n := range from.Products {
			into.Products[i] += n
		}
		return into
	})
	slices.SortFunc(list.IDs, func(a, b int64) int { return cmp.Compare(b, a) })
	return list
}
