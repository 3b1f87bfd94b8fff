package scans

import (
	"context"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/deployments/details"
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
	environment := details.Environment(meta.GetCiJobUrl())
	byUs, err := isManaged(ctx, s.store.Reader, row)
	if err != nil {
		return nil, err
	}
	if byUs {
		environment = deploymentsv1.ScanEnvironment_SCAN_ENVIRONMENT_MANAGED_SCANS
	}
	return &scansv1.GetScanOverviewResponse{Scan: &scansv1.ScanOverview{
		Id: row.ID, DeploymentId: row.DeploymentID, RepositoryId: row.ProjectID, Environment: environment,
		IsFullScan: row.IsFullScan, Branch: row.Ref, Commit: row.Commit, Status: scanStatus(row), ExitCode: int64(row.ExitCode),
		TotalTime: seconds(row), CliVersion: opened.GetCliVersion(),
		StartedAt: timestamp(row.StartedAt), CompletedAt: store.Timestamp(row.CompletedAt),
		FindingsCounts: &scansv1.ScanOverviewCounts{
			Total: row.TotalCount, Code: row.CodeCount, SupplyChain: row.SupplyChainCount, Secrets: row.SecretsCount,
		},
	}}, nil
}
