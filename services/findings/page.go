package findings

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/hashicorp/golang-lru/v2/expirable"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/internal/store"
)

// boundary is the last row of a page in the order of lists: the next page begins behind it.
type boundary struct {
	relevantSince, id int64
	end               bool // nothing follows
}

// boundaries remembers where served pages ended, so that page N+1 after page N costs what page 0 costs, and so that a
// walk over all pages neither misses nor doubles a finding when others arrive meanwhile. It belongs to one caller, to
// what he sees, and to one filter, and is kept in this process: another node counts along the index instead.
type boundaries struct {
	cache *expirable.LRU[pageKey, boundary]
}

type pageKey [sha256.Size]byte

func newBoundaries() *boundaries {
	return &boundaries{cache: expirable.NewLRU[pageKey, boundary](20_000, nil, 15*time.Minute)}
}

// key identifies a page: caller and filter as given, size and number of the page.
func (b *boundaries) key(caller string, filter []byte, pageSize, page int64) pageKey {
	h := sha256.New()
	var n [8]byte
	for _, part := range [][]byte{[]byte(caller), filter} {
		binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	for _, number := range []int64{pageSize, page} {
		binary.LittleEndian.PutUint64(n[:], uint64(number))
		h.Write(n[:])
	}
	return pageKey(h.Sum(nil))
}

// list identifies a list, whatever its pages: there are no pages of no rows.
func (b *boundaries) list(caller string, filter []byte) pageKey { return b.key(caller, filter, 0, 0) }

// newestFirst is the order of all lists, with a stable tie-break.
func newestFirst(s *entsql.Selector) {
	s.OrderBy(entsql.Desc(s.C(finding.FieldRelevantSince)), entsql.Desc(s.C(finding.FieldID)))
}

// behind limits findings to those after a boundary.
func behind(b boundary) predicate.Finding {
	return func(s *entsql.Selector) {
		s.Where(entsql.CompositeLT([]string{s.C(finding.FieldRelevantSince), s.C(finding.FieldID)}, b.relevantSince, b.id))
	}
}

// latestOfIdentity keeps, of findings that are the same on several refs, the newest one among those that the filter
// chooses. Its twins are found by identity: SQLite could take an index of the filter instead, of which it knows too little.
func latestOfIdentity(where []predicate.Finding) predicate.Finding {
	return func(s *entsql.Selector) {
		twin := entsql.Table(finding.Table).As("twin")
		other := entsql.Dialect(s.Dialect()).Select(twin.C(finding.FieldID)).From(twin)
		store.Unindexed(where...)(other)
		newer := entsql.Or(
			entsql.ColumnsGT(twin.C(finding.FieldRelevantSince), s.C(finding.FieldRelevantSince)),
			entsql.And(
				entsql.ColumnsEQ(twin.C(finding.FieldRelevantSince), s.C(finding.FieldRelevantSince)),
				entsql.ColumnsGT(twin.C(finding.FieldID), s.C(finding.FieldID)),
			),
		)
		other.Where(entsql.And(
			entsql.ColumnsEQ(twin.C(finding.FieldDeploymentID), s.C(finding.FieldDeploymentID)),
			entsql.ColumnsEQ(twin.C(finding.FieldProjectID), s.C(finding.FieldProjectID)),
			entsql.ColumnsEQ(twin.C(finding.FieldFingerprint), s.C(finding.FieldFingerprint)),
			newer,
		))
		s.Where(entsql.NotExists(other))
	}
}
