package ingest

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scancoverage"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/lastscan"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// storeLastSeen stores for missing findings which scan reported them last, unless an earlier scan missed them already,
// and forgets that for findings that this scan reports again. Package lastscan has the rule.
func (c *closer) storeLastSeen(ctx context.Context, g *matches, missing []int64) error {
	counts, err := c.countsAsSeen(ctx, g)
	if err != nil || !counts {
		return err
	}
	for part := range slices.Chunk(missing, closeBatch) {
		err := c.tx.Finding.Update().Where(store.OfDeployment[predicate.Finding](c.deploymentID), store.WithIDs[predicate.Finding](part),
			finding.LastSeenScanIDIsNil()).Modify(func(u *entsql.UpdateBuilder) {
			u.Set(finding.FieldLastSeenScanID, entsql.ExprFunc(func(b *entsql.Builder) {
				b.WriteString("COALESCE(")
				lastscan.Write(b, finding.Table)
				b.WriteString(", " + finding.FieldFirstSeenScanID + ")")
			}))
		}).Exec(tenant.ByKey(ctx))
		if err != nil {
			return fmt.Errorf("store the scans that reported missing findings: %w", err)
		}
	}
	again, err := c.tx.Finding.Query().Where(finding.DeploymentID(c.deploymentID), finding.ProjectID(c.project.ID), finding.Ref(c.scan.Ref),
		finding.Tool(g.Tool), finding.AnalysisCategory(g.Category), finding.StateIn(lifecycle.Unresolved, lifecycle.Muted),
		finding.LastSeenScanIDNotNil()).Order(ent.Asc(finding.FieldID)).IDs(ctx)
	if err != nil {
		return err
	}
	again = slices.DeleteFunc(again, func(id int64) bool { return !g.isJoined(id) })
	for part := range slices.Chunk(again, closeBatch) {
		err := c.tx.Finding.Update().Where(store.OfDeployment[predicate.Finding](c.deploymentID), store.WithIDs[predicate.Finding](part)).
			ClearLastSeenScanID().Exec(tenant.ByKey(ctx))
		if err != nil {
			return fmt.Errorf("forget the scans that reported findings before: %w", err)
		}
	}
	return nil
}

// countsAsSeen reports whether the scan says which findings are there: a successful full scan does, and a diff scan of
// a ref that has no full scan.
func (c *closer) countsAsSeen(ctx context.Context, g *matches) (bool, error) {
	if g.coverage.GetFailure() != "" || c.comparesWithItself() {
		return false, nil
	}
	if c.scan.IsFullScan {
		return true, nil
	}
	full, err := c.tx.ScanCoverage.Query().Where(c.ofAnalysis(g.Analysis, c.scan.Ref)...).Where(scancoverage.IsFullScan(true)).Exist(ctx)
	return !full, err
}
