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

// equals joins results to findings that have the same evidence and location. Among equal ones, the oldest findings are
// joined to the first results. The order in which the findings arrive does not matter.
type equals struct {
	traces     *traces
	byLocation []locationEntry // sorted
	joined     []int64         // by result
	unchanged  unchanged
	unjoined   []identity.Known
}

// locationEntry is a result with a hash of its evidence and location.
type locationEntry struct {
	key    uint64
	result int32
}

func locationKey(e *identity.Evidence) uint64 {
	return uint64(e.Key()) + uint64(e.Line)*0x9e3779b97f4a7c15 + uint64(e.Column)*0xff51afd7ed558ccd
}

func indexByLocation(traces *traces) []locationEntry {
	byLocation := make([]locationEntry, traces.size)
	for n := range byLocation {
		t := traces.at(n)
		byLocation[n] = locationEntry{locationKey(&t.Evidence), int32(n)}
	}
	slices.SortFunc(byLocation, func(a, b locationEntry) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.result, b.result))
	})
	return byLocation
}

func newEquals(g *group) *equals {
	return &equals{traces: g.traces, byLocation: g.byLocation, joined: make([]int64, g.traces.size)}
}

// join joins a finding to its result, or adds it to the unjoined findings.
func (q *equals) join(k identity.Known, about *stored) {
	key := locationKey(&k.Evidence)
	at, _ := slices.BinarySearchFunc(q.byLocation, key, func(p locationEntry, key uint64) int { return cmp.Compare(p.key, key) })
	for ; at < len(q.byLocation) && q.byLocation[at].key == key; at++ {
		n := int(q.byLocation[at].result)
		t := q.traces.find(n)
		switch {
		case t.Evidence != k.Evidence:
		case q.joined[n] == 0:
			if q.joined[n] = k.ID; about.sameAs(&t) {
				q.unchanged.add(n, t.product, q.traces.size)
			}
			return
		case q.joined[n] > k.ID: // the older finding takes precedence
			q.joined[n], k.ID = k.ID, q.joined[n]
			q.unchanged.remove(n, t.product)
			about = nil
		}
	}
	q.unjoined = append(q.unjoined, k)
}

// stored has the columns that tell whether a result of equal evidence changes its finding.
type stored struct {
	state       string
	ignored     bool // by a policy
	contentHash int64
	// whole says that the stored evidence is what would be written now.
	hasPath, whole bool
}

// sameAs reports whether writing the result would change nothing: see compare.
func (s *stored) sameAs(t *trace) bool {
	return s != nil && s.whole && s.contentHash == t.contentHash && (s.hasPath || !t.hasPath) && (s.state == lifecycle.Muted) == t.muted &&
		s.ignored == t.ignored
}

// unchanged is a set of results, with their number per product.
type unchanged struct {
	bits []uint64
	of   [len(products)]int
}

func (s *unchanged) add(n int, product byte, size int) {
	if s.bits == nil {
		s.bits = make([]uint64, (size+63)/64)
	}
	s.bits[n/64] |= 1 << (n % 64)
	s.of[product]++
}

func (s *unchanged) remove(n int, product byte) {
	if s.has(n) {
		s.bits[n/64] &^= 1 << (n % 64)
		s.of[product]--
	}
}

func (s *unchanged) has(n int) bool { return s.bits != nil && s.bits[n/64]&(1<<(n%64)) != 0 }

func (s *unchanged) total() (n int) {
	for _, count := range s.of {
		n += count
	}
	return n
}

// joinEqual joins results to open findings that did not change, which are nearly all, and returns the other open
// findings. It joins them while reading the rows, so that they are never all in memory.
func (m *matcher) joinEqual(ctx context.Context, g *matches, former map[uint64]uint64) (left []identity.Known, err error) {
	var q *equals
	there := entsql.And(entsql.EQ(finding.FieldRef, m.scan.Ref), entsql.In(finding.FieldState, lifecycle.Unresolved, lifecycle.Muted))
	err = m.eachKnown(ctx, g.group, former, there, false, func() yieldKnown {
		q, g.open = newEquals(g.group), 0
		return func(k *identity.Known, _, _ []byte, about *stored) {
			g.open++
			q.join(*k, about)
		}
	})
	if err != nil {
		return nil, err
	}
	g.joined, g.unchanged, g.byLocation = q.joined, q.unchanged, nil
	slices.SortFunc(q.unjoined, func(a, b identity.Known) int { return cmp.Compare(a.ID, b.ID) })
	return q.unjoined, nil
}
