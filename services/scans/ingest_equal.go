package scans

import (
	"cmp"
	"context"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/lifecycle"
)

// equals joins results to findings that have just the same evidence in the same place. Of equal ones, the oldest findings go to
// the first results, in whatever order they come.
type equals struct {
	evidence *evidenceList
	places   []place // sorted
	joined   []int64 // by result
	left     []identity.Known
}

// place is a result, by a number that those of equal evidence and place have in common.
type place struct {
	key    uint64
	result int32
}

func placeKey(e *identity.Evidence) uint64 {
	return uint64(e.Key()) + uint64(e.Line)*0x9e3779b97f4a7c15 + uint64(e.Column)*0xff51afd7ed558ccd
}

func newEquals(evidence *evidenceList) *equals {
	q := &equals{evidence: evidence, places: make([]place, evidence.size), joined: make([]int64, evidence.size)}
	for n := range q.places {
		q.places[n] = place{placeKey(evidence.at(n)), int32(n)}
	}
	slices.SortFunc(q.places, func(a, b place) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.result, b.result)) })
	return q
}

// take finds the result of a finding, or leaves it.
func (q *equals) take(k identity.Known) {
	key := placeKey(&k.Evidence)
	at, _ := slices.BinarySearchFunc(q.places, key, func(p place, key uint64) int { return cmp.Compare(p.key, key) })
	for ; at < len(q.places) && q.places[at].key == key; at++ {
		n := q.places[at].result
		switch {
		case *q.evidence.at(int(n)) != k.Evidence:
		case q.joined[n] == 0:
			q.joined[n] = k.ID
			return
		case q.joined[n] > k.ID: // it gives way to the older one
			q.joined[n], k.ID = k.ID, q.joined[n]
		}
	}
	q.left = append(q.left, k)
}

// joinEqual joins results to findings that are there and did not change, which are nearly all, while it reads them, and returns
// the others. So the many are never in memory.
func (in *ingest) joinEqual(ctx context.Context, g *group, former map[uint64]uint64) (left []identity.Known, err error) {
	var q *equals
	there := entsql.And(entsql.EQ(finding.FieldRef, in.scan.Ref), entsql.In(finding.FieldState, lifecycle.Unresolved, lifecycle.Muted))
	err = in.eachKnown(ctx, g.analysis, former, there, func() yieldKnown {
		q = newEquals(&g.evidence)
		return func(k *identity.Known, _, _ []byte) { q.take(*k) }
	})
	if err != nil {
		return nil, err
	}
	g.joined = q.joined
	slices.SortFunc(q.left, func(a, b identity.Known) int { return cmp.Compare(a.ID, b.ID) })
	return q.left, nil
}
