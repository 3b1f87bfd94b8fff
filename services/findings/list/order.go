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

// Behind limits findings to those that follow, in the order of lists, the one with this time, in microseconds, and id.
func Behind(relevantSince, id int64) predicate.Finding {
	return func(s *entsql.Selector) {
		s.Where(entsql.CompositeLT([]string{s.C(finding.FieldRelevantSince), s.C(finding.FieldID)}, relevantSince, id))
	}
}

// LatestOfIdentity keeps, of findings that are the same on several refs, the newest one among those that the conditions
// choose.
func LatestOfIdentity(where []predicate.Finding) predicate.Finding {
	return oneOfIdentity(where, entsql.ColumnsGT)
}

// firstOfIdentity keeps the oldest one: another ref that has it, too, moves nothing in a list that somebody walks
// through.
func firstOfIdentity(where []predicate.Finding) predicate.Finding {
	return oneOfIdentity(where, entsql.ColumnsLT)
}

// oneOfIdentity keeps findings without a twin before them. Twins are found by identity: SQLite could take an index of
// the filter instead, of which it knows too little.
func oneOfIdentity(
	where []predicate.Finding, before func(twin, this string) *entsql.Predicate,
) predicate.Finding {
	return func(s *entsql.Selector) {
		twin := entsql.Table(finding.Table).As("twin")
		other := entsql.Dialect(s.Dialect()).Select(twin.C(finding.FieldID)).From(twin)
		store.Unindexed(where...)(other)
		other.Where(entsql.And(
			entsql.ColumnsEQ(twin.C(finding.FieldDeploymentID), s.C(finding.FieldDeploymentID)),
			entsql.ColumnsEQ(twin.C(finding.FieldProjectID), s.C(finding.FieldProjectID)),
			entsql.ColumnsEQ(twin.C(finding.FieldFingerprint), s.C(finding.FieldFingerprint)),
			entsql.Or(
				before(twin.C(finding.FieldRelevantSince), s.C(finding.FieldRelevantSince)),
				entsql.And(
					entsql.ColumnsEQ(twin.C(finding.FieldRelevantSince), s.C(finding.FieldRelevantSince)),
					before(twin.C(finding.FieldID), s.C(finding.FieldID)),
				),
			),
		))
		s.Where(entsql.NotExists(other))
	}
}
