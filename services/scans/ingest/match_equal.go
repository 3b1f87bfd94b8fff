package ingest

import (
	"cmp"
	"context"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/lifecycle"
)

// equals joins results to findings that have just the same evidence in the same place. Of equal ones, the oldest
// findings go to the first results, in whatever order they come.
type equals struct {
	traces  *traces
	places  []place // sorted
	joined  []int64 // by result
	settled settled
	left    []identity.Known
}

// place is a result, by a number that those of equal evidence and place have in common.
type place struct {
	key    uint64
	result int32
}

func placeKey(e *identity.Evidence) uint64 {
	return uint64(e.Key()) + uint64(e.Line)*0x9e3779b97f4a7c15 + uint64(e.Column)*0xff51afd7ed558ccd
}

func placesOf(traces *traces) []place {
	places := make([]place, traces.size)
	for n := range places {
		t := traces.at(n)
		places[n] = place{placeKey(&t.Evidence), int32(n)}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.result, b.result)) })
	return places
}

func newEquals(g *group) *equals {
	return &equals{traces: g.traces, places: g.places, joined: make([]int64, g.traces.size)}
}

// take finds the result of a finding, or leaves it.
func (q *equals) take(k identity.Known, about *stored) {
	key := placeKey(&k.Evidence)
	at, _ := slices.BinarySearchFunc(q.places, key, func(p place, key uint64) int { return cmp.Compare(p.key, key) })
	for ; at < len(q.places) && q.places[at].key == key; at++ {
		n := int(q.places[at].result)
		t := q.traces.find(n)
		switch {
		case t.Evidence != k.Evidence:
		case q.joined[n] == 0:
			if q.joined[n] = k.ID; about.says(&t) {
				q.settled.add(n, t.product, q.traces.size)
			}
			return
		case q.joined[n] > k.ID: // it gives way to the older one
			q.joined[n], k.ID = k.ID, q.joined[n]
			q.settled.remove(n, t.product)
			about = nil
		}
	}
	q.left = append(q.left, k)
}

// stored is what has to be known of a finding to see whether a result of equal evidence brings news.
type stored struct {
	state       string
	contentHash int64
	// whole: it has a file path, and its evidence is as it would be written now.
	hasPath, whole bool
}

// says reports whether the result is stored just so: see compare.
func (s *stored) says(t *trace) bool {
	return s != nil && s.whole && s.contentHash == t.contentHash && (s.hasPath || !t.hasPath) && (s.state == lifecycle.Muted) == t.muted
}

// settled is a set of results, and how many they are of each product.
type settled struct {
	bits []uint64
	of   [len(products)]int
}

func (s *settled) add(n int, product byte, size int) {
	if s.bits == nil {
		s.bits = make([]uint64, (size+63)/64)
	}
	s.bits[n/64] |= 1 << (n % 64)
	s.of[product]++
}

func (s *settled) remove(n int, product byte) {
	if s.has(n) {
		s.bits[n/64] &^= 1 << (n % 64)
		s.of[product]--
	}
}

func (s *settled) has(n int) bool { return s.bits != nil && s.bits[n/64]&(1<<(n%64)) != 0 }

func (s *settled) total() (n int) {
	for _, count := range s.of {
		n += count
	}
	return n
}

// joinEqual joins results to findings that are there and did not change, which are nearly all, while it reads them, and
// returns the others. So the many are never in memory.
func (m *matcher) joinEqual(ctx context.Context, g *matches, former map[uint64]uint64) (left []identity.Known, err error) {
	var q *equals
	there := entsql.And(entsql.EQ(finding.FieldRef, m.scan.Ref), entsql.In(finding.FieldState, lifecycle.Unresolved, lifecycle.Muted))
	err = m.eachKnown(ctx, g.group, former, there, false, func() yieldKnown {
		q = newEquals(g.group)
		return func(k *identity.Known, _, _ []byte, about *stored) { q.take(*k, about) }
	})
	if err != nil {
		return nil, err
	}
	g.joined, g.settled, g.places = q.joined, q.settled, nil
	slices.SortFunc(q.left, func(a, b identity.Known) int { return cmp.Compare(a.ID, b.ID) })
	return q.left, nil
}
