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

// coverageAge is how long coverages are kept of which there is a newer one.
const coverageAge = 30 * 24 * time.Hour

// purgeCoverages deletes coverages from before a time, of any deployment, but for the newest ones of each analysis: of
// its full scans, and of those that compare with a base. It returns how many they were.
func purgeCoverages(ctx context.Context, st *store.Store, before time.Time) (n int, err error) {
	err = st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		n, err = tx.ScanCoverage.Delete().Where(ofEveryDeployment, scancoverage.AtLT(store.Micros(before)), hasNewer).Exec(ctx)
		return err
	})
	return n, err
}

// hasNewer is true of coverages of which there is a newer one of the same analysis and kind of scan.
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
	where = append(where, entsql.ColumnsGT(newer.C(scancoverage.FieldScanID), own(scancoverage.FieldScanID)))
	s.Where(entsql.Exists(same.Where(entsql.And(where...))))
}
