package scans

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scananswer"
	"github.com/palisade/palisade/ent/scancoverage"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/ingest"
)

// refOf is a ref of a project.
type refOf struct {
	project int64
	ref     string
}

// blockedRefs returns the refs of scans on which the latest scan of a tool and category failed its pipeline. rows are
// the latest scans of pull requests.
func blockedRefs(ctx context.Context, db *ent.Client, rows []*ent.Scan) (map[refOf]bool, error) {
	wanted, projects, refs, latest := map[refOf]bool{}, []int64{}, []string{}, map[int64]refOf{}
	for _, row := range rows {
		at := refOf{row.ProjectID, row.Ref}
		wanted[at], latest[row.ID] = true, at
		projects, refs = append(projects, row.ProjectID), append(refs, row.Ref)
	}
	var analyses []struct {
		ProjectID int64 `sql:"project_id"`
		Ref       string
		Tool      string
		Category  string `sql:"analysis_category"`
		Max       int64
	}
	err := db.ScanCoverage.Query().Where(store.OneOf(scancoverage.FieldProjectID, projects), store.OneOf(scancoverage.FieldRef, refs)).
		GroupBy(scancoverage.FieldProjectID, scancoverage.FieldRef, scancoverage.FieldTool, scancoverage.FieldAnalysisCategory).
		Aggregate(ent.Max(scancoverage.FieldScanID)).Scan(ctx, &analyses)
	if err != nil {
		return nil, err
	}
	for _, one := range analyses {
		if at := (refOf{one.ProjectID, one.Ref}); wanted[at] {
			latest[one.Max] = at
		}
	}
	ids := make([]int64, 0, len(latest))
	for id := range latest {
		ids = append(ids, id)
	}
	scans, err := db.Scan.Query().Where(store.OneOf(scan.FieldID, ids)).
		Select(scan.FieldID, scan.FieldUniqueID, scan.FieldScanner, scan.FieldExitCode).All(ctx)
	if err != nil {
		return nil, err
	}
	answers, err := db.ScanAnswer.Query().Where(store.OneOf(scananswer.FieldProjectID, projects), store.OneOf(scananswer.FieldScanID, ids)).All(ctx)
	if err != nil {
		return nil, err
	}
	blocked := map[refOf]bool{}
	for _, row := range scans {
		kept, err := scannerOf(row)
		if err != nil {
			return nil, err
		}
		if kept.GetBlock() || !isUpload(row) && row.ExitCode == 1 {
			blocked[latest[row.ID]] = true
		}
	}
	for _, row := range answers {
		answer := &scansv1.UploadReportResponse{}
		if err := ingest.Decompress(row.Content, answer); err != nil {
			return nil, fmt.Errorf("answer to the upload of scan %d: %w", row.ScanID, err)
		}
		if answer.GetBlocked() {
			blocked[latest[row.ScanID]] = true
		}
	}
	return blocked, nil
}
