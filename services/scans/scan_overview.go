package scans

import (
	"context"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/deployments/details"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// GetScanOverview returns one scan of the credential's deployment (contract facts, section 10).
func (s *Scans) GetScanOverview(ctx context.Context, r *scansv1.GetScanOverviewRequest) (*scansv1.GetScanOverviewResponse, error) {
	row, err := findScan(ctx, s.store.Reader, r.GetScanId())
	if err != nil {
		return nil, err
	}
	meta, err := metaOf(row)
	if err != nil {
		return nil, err
	}
	opened, err := scannerOf(row) // empty for uploads: the scanner's version is unknown
	if err != nil {
		return nil, err
	}
	return &scansv1.GetScanOverviewResponse{Scan: &scansv1.ScanOverview{
		Id: row.ID, DeploymentId: row.DeploymentID, RepositoryId: row.ProjectID, Environment: details.Environment(meta.GetCiJobUrl()),
		IsFullScan: row.IsFullScan, Branch: row.Ref, Commit: row.Commit, Status: scanStatus(row), ExitCode: int64(row.ExitCode),
		TotalTime: seconds(row), CliVersion: opened.GetCliVersion(),
		StartedAt: timestamp(row.StartedAt), CompletedAt: store.Timestamp(row.CompletedAt),
		FindingsCounts: &scansv1.ScanOverviewCounts{
			Total: row.TotalCount, Code: row.CodeCount, SupplyChain: row.SupplyChainCount, Secrets: row.SecretsCount,
		},
	}}, nil
}

// RunManagedScans refuses: this server runs no scanners (contract facts, section 10).
func (*Scans) RunManagedScans(context.Context, *scansv1.RunManagedScansRequest) (*scansv1.RunManagedScansResponse, error) {
	return nil, apierr.NotImplemented("this server runs no scans itself: run the scanner in your pipeline, and upload its results")
}
