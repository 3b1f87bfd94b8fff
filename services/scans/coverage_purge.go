package scans

import (
	"context"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scancoverage"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// coverageAge is how long a coverage is kept after a newer one replaced it.
const coverageAge = 30 * 24 * time.Hour

// purgeCoverages deletes coverages from before a time in all deployments. It keeps the newest ones of each analysis:
// one of its full scans, and one of its diff scans. It returns the number of deleted coverages.
func purgeCoverages(ctx context.Context, st *store.Store, before time.Time) (n int, err error) {
	err = st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		n, err = tx.ScanCoverage.Delete().Where(ofEveryDeployment, scancoverage.AtLT(store.Micros(before)), hasNewer).Exec(ctx)
		return err
	})
	return n, err
}

// hasNewer selects coverages that have a newer one of the same analysis and kind of scan for all products that they
// report. A failed run reports none.
func hasNewer(s *entsql.Selector) {
	newer := entsql.Table(scancoverage.Table).As("newer")
	same := entsql.Dialect(s.Dialect()).Select(newer.C(scancoverage.FieldID)).From(newer)
	own := func(field string) string { return entsql.Table(scancoverage.Table).C(field) }
	var where []*entsql.Predicate
	for _, field := range []string{
		scancoverage.FieldDeploymentID, scancoverage.FieldProjectID, scancoverage.FieldRef, scancoverage.FieldTool,
		scancoverage.FieldAnalysisCategory, scancoverage.FieldIsFullScan,
	} {
		where = append(where, entsql.ColumnsEQ(newer.C(field), own(field)))
	}
	where = append(where, entsql.ColumnsGT(newer.C(scancoverage.FieldScanID), own(scancoverage.FieldScanID)), entsql.P(func(b *entsql.Builder) {
		reported := func() { // rows of earlier versions do not say what they report
			b.WriteString("COALESCE(").Ident(own(scancoverage.FieldProducts)).WriteString(", 0)")
		}
		b.WriteString("(COALESCE(").Ident(newer.C(scancoverage.FieldProducts)).WriteString(", -1) & ")
		reported()
		b.WriteString(") = ")
		reported()
	}))
	s.Where(entsql.Exists(same.Where(entsql.And(where...))))
}
