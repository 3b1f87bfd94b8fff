package scans

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scans/scanstats"
)

// The messages about scans that are not retried.
const (
	notManaged = "not a managed scan: scan it again where it ran, or in CI"
	notFound   = "scan not found"
)

// ScansV2 is the service group "scans V2".
type ScansV2 struct {
	scansv1.UnimplementedScansV2ServiceServer
	store *store.Store
	jobs  *jobs.Jobs
}

// NewScansV2 serves scans from the store. Jobs run managed scans.
func NewScansV2(st *store.Store, queue *jobs.Jobs) *ScansV2 { return &ScansV2{store: st, jobs: queue} }

// GetScanV2 returns one scan.
func (s *ScansV2) GetScanV2(ctx context.Context, r *scansv1.GetScanV2Request) (*scansv1.GetScanV2Response, error) {
	row, err := findScan(ctx, s.store.Reader, r.GetScanId())
	if err != nil {
		return nil, err
	}
	return &scansv1.GetScanV2Response{Scan: convertScanV2(row)}, nil
}

// ListScans lists the scans of a project in the last 30 days, newest first.
func (s *ScansV2) ListScans(ctx context.Context, r *scansv1.ListScansRequest) (*scansv1.ListScansResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("scans V2"+tenant.Visibility(ctx), filter)
	if err != nil {
		return nil, err
	}
	known, err := s.store.Reader.Project.Query().Where(project.ID(r.GetProjectId())).Exist(ctx)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, apierr.NotFound("project %d not found", r.GetProjectId())
	}
	f := r.GetFilters()
	where := searchPredicates(&scansv1.SearchScansRequest{
		RepositoryId: r.GetProjectId(), Branch: f.GetBranch(), Since: f.GetCreatedSince(), TotalTime: f.GetDuration(),
		Products: f.GetIncludeEnabledProducts(), Statuses: f.GetStatuses(),
	}, time.Now())
	if full, limited := onlyFull(f.GetTypes()); limited {
		where = append(where, scan.IsFullScan(full))
	}
	rows, next, err := scanPage(ctx, s.store.Reader, where, digest, r.GetCursor(), r.GetLimit())
	if err != nil {
		return nil, err
	}
	response := &scansv1.ListScansResponse{Cursor: next}
	for _, row := range rows {
		response.Scans = append(response.Scans, convertScanV2(row))
	}
	return response, nil
}

// onlyFull reports whether full scans or diff scans are wanted; limited is false for both.
func onlyFull(types []scansv1.ScanType) (full, limited bool) {
	wanted := map[scansv1.ScanType]bool{}
	for _, one := range types {
		wanted[one] = true
	}
	full = wanted[scansv1.ScanType_SCAN_TYPE_FULL]
	return full, full != wanted[scansv1.ScanType_SCAN_TYPE_DIFF]
}

func convertScanV2(row *ent.Scan) *scansv1.Scan {
	out := &scansv1.Scan{
		Id: row.ID, DeploymentId: row.DeploymentID, ProjectId: row.ProjectID, BranchId: gitref.ID(row.ProjectID, row.Ref), Commit: row.Commit,
		StartTime: timestamp(row.StartedAt), CompleteTime: store.Timestamp(row.CompletedAt), ExitCode: int64(row.ExitCode), IsFullScan: row.IsFullScan,
		FindingsCounts: &scansv1.ScanCounts{Total: row.TotalCount, Code: row.CodeCount, SupplyChain: row.SupplyChainCount, Secrets: row.SecretsCount},
		Status:         scanStatus(row),
	}
	if _, told := scanstats.Seconds(row.Stats); told || row.CompletedAt != nil {
		out.Duration = strconv.FormatFloat(seconds(row), 'f', -1, 64) + "s"
	}
	for product := scansv1.Product_PRODUCT_SAST; product <= scansv1.Product_PRODUCT_AI_SAST; product++ {
		if row.Products&(1<<product) != 0 {
			out.EnabledProducts = append(out.EnabledProducts, product)
		}
	}
	return out
}
