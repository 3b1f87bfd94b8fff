package ruleset

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scan"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
)

// minFailures is how many scans must have failed. One may have other reasons.
const minFailures = 2

// Failing is a deployment whose scans all fail since its rules changed.
type Failing struct {
	// Since is when the rules changed, in microseconds.
	Since int64
	// LastScan is the latest scan that failed.
	LastScan *ent.Scan
}

// ScansFailing returns whether all scans of the context's deployment have failed since its rules changed; nil if not.
// Reports that were uploaded do not count, because they do not use these rules.
func ScansFailing(ctx context.Context, db *ent.Client) (*Failing, error) {
	now, err := stateOf(ctx, db)
	if err != nil || now.Count == 0 {
		return nil, err
	}
	of := func(status scansv1.ScanStatus) *ent.ScanQuery {
		return db.Scan.Query().Where(scan.Status(status.String()), scan.StartedAtGT(now.Newest), scan.UniqueIDNotNil())
	}
	failed, err := of(scansv1.ScanStatus_SCAN_STATUS_ERROR).Order(ent.Desc(scan.FieldStartedAt, scan.FieldID)).Limit(minFailures).
		Select(scan.FieldID, scan.FieldProjectID, scan.FieldExitCode, scan.FieldStartedAt).All(ctx)
	if err != nil || len(failed) < minFailures {
		return nil, err
	}
	if works, err := of(scansv1.ScanStatus_SCAN_STATUS_COMPLETED).Exist(ctx); err != nil || works {
		return nil, err
	}
	return &Failing{now.Newest, failed[0]}, nil
}
