package list

import (
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/internal/store"
)

// NewestFirst is the order of all lists of findings, with a stable tie-break.
func NewestFirst(s *entsql.Selector) {
	s.OrderBy(entsql.Desc(s.C(finding.FieldRelevantSince)), entsql.Desc(s.C(finding.FieldID)))
}

// After limits findings to the rows after the given key in NewestFirst order. relevantSince is in microseconds.
func After(relevantSince, id int64) predicate.Finding {
	return func(s *entsql.Selector) {
		s.Where(entsql.CompositeLT([]string{s.C(finding.FieldRelevantSince), s.C(finding.FieldID)}, relevantSince, id))
	}
}

// LatestOfIdentity keeps one finding of each identity: the newest that satisfies the conditions, on any ref.
func LatestOfIdentity(where []predicate.Finding) predicate.Finding {
	return oneOfIdentity(where, entsql.ColumnsGT)
}

// firstOfIdentity keeps the oldest finding of each identity. The list then stays stable during a listing session when
// another ref gets the same finding.
func firstOfIdentity(where []predicate.Finding) predicate.Finding {
	return oneOfIdentity(where, entsql.ColumnsLT)
}

// oneOfIdentity keeps findings that have no sibling before them. The conditions on siblings are hidden from SQLite's
// planner, so that it finds siblings by the index on the identity.
func oneOfIdentity(
	where []predicate.Finding, before func(sibling, this string) *entsql.Predicate,
) predicate.Finding {
	return func(s *entsql.Selector) {
		sibling := entsql.Table(finding.Table).As("sibling")
		other := entsql.Dialect(s.Dialect()).Select(sibling.C(finding.FieldID)).From(sibling)
		store.Unindexed(where...)(other)
		other.Where(entsql.And(
			entsql.ColumnsEQ(sibling.C(finding.FieldDeploymentID), s.C(finding.FieldDeploymentID)),
			entsql.ColumnsEQ(sibling.C(finding.FieldProjectID), s.C(finding.FieldProjectID)),
			entsql.ColumnsEQ(sibling.C(finding.FieldFingerprint), s.C(finding.FieldFingerprint)),
			entsql.Or(
				before(sibling.C(finding.FieldRelevantSince), s.C(finding.FieldRelevantSince)),
				entsql.And(
					entsql.ColumnsEQ(sibling.C(finding.FieldRelevantSince), s.C(finding.FieldRelevantSince)),
					before(sibling.C(finding.FieldID), s.C(finding.FieldID)),
				),
			),
		))
		s.Where(entsql.NotExists(other))
	}
}
