package issue

import (
	"context"
	"maps"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/findings/lastscan"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// readLastSeen reads which scans reported the rows last (see package lastscan).
func (a *relatedRows) readLastSeen(ctx context.Context, db *ent.Client) error {
	type analysis struct {
		projectID                      int64
		ref, tool, category, issueType string
	}
	analysisOf := func(row *ent.Finding) analysis {
		return analysis{row.ProjectID, row.Ref, row.Tool, row.AnalysisCategory, row.IssueType}
	}
	one := map[analysis]int64{} // one row of each analysis that its latest scan reported
	for _, row := range a.rows {
		if row.LastSeenScanID == nil && lifecycle.Seen(row.State) {
			one[analysisOf(row)] = row.ID
		}
	}
	latest, err := latestScans(ctx, db, slices.Collect(maps.Values(one)))
	if err != nil {
		return err
	}
	for _, row := range a.rows {
		last := int64(0)
		switch {
		case row.LastSeenScanID != nil:
			last = *row.LastSeenScanID
		case lifecycle.Seen(row.State):
			last = latest[one[analysisOf(row)]]
		}
		if last != 0 {
			last = max(last, row.FirstSeenScanID)
			a.lastSeen[row.ID], a.scans[last] = last, nil
		}
	}
	return nil
}

// latestScans returns the latest scan of the analysis of each finding; 0 if none is known.
func latestScans(ctx context.Context, db *ent.Client, ids []int64) (map[int64]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var list []struct {
		ID     int64  `sql:"id"`
		ScanID *int64 `sql:"scan_id"`
	}
	err := db.Finding.Query().Where(store.WithIDs[predicate.Finding](ids)).Modify(func(s *entsql.Selector) {
		s.Select(s.C(finding.FieldID)).AppendSelectExprAs(entsql.ExprFunc(func(b *entsql.Builder) { lastscan.Write(b, finding.Table) }), "scan_id")
	}).Scan(ctx, &list)
	latest := map[int64]int64{}
	for _, row := range list {
		if row.ScanID != nil {
			latest[row.ID] = *row.ScanID
		}
	}
	return latest, err
}
