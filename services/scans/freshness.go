package scans

import (
	"context"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/freshness"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/watch"
	"github.com/palisade/palisade/services/scans/watch/judge"
)

// closeAs sets the status of a scan whose results are stored: an error if the tool of one of its analyses failed.
func closeAs(row *ent.Scan, result *ingest.Summary) {
	status := scansv1.ScanStatus_SCAN_STATUS_COMPLETED
	for _, a := range result.Analyses() {
		if why := a.Coverage.GetFailure(); why != "" && why != failedPartial {
			status = scansv1.ScanStatus_SCAN_STATUS_ERROR
		}
	}
	row.Status = status.String()
}

// observed is what a scan that has ended says about its analyses. A scan that was limited to some rules says nothing,
// and the sizes of an older scan are no news.
func observed(result *ingest.Summary, row *ent.Scan) (list []watch.Analysis) {
	for _, a := range result.Analyses() {
		if a.Coverage.GetFailure() == failedPartial {
			continue
		}
		s := watch.Covered(row, a.Coverage, int64(a.Results))
		if a.Older {
			s.Results, s.Files, s.Rules = -1, -1, -1
		}
		list = append(list, watch.Analysis{Tool: a.Tool, Category: a.Category, Scan: s})
	}
	return list
}

// Freshness is the service group "freshness".
type Freshness struct {
	scansv1.UnimplementedFreshnessServiceServer
	store *store.Store
}

// NewFreshness serves freshness from the store.
func NewFreshness(st *store.Store) *Freshness { return &Freshness{store: st} }

// ListFreshness lists analyses, the worst state first.
func (s *Freshness) ListFreshness(ctx context.Context, r *scansv1.ListFreshnessRequest) (*scansv1.ListFreshnessResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", nil
	digest, err := page.DigestOf("freshness"+tenant.Visibility(ctx), filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.Freshness.Query().Where(freshness.StateGT(int32(judge.Unwatched)), inUse)
	if r.GetProject() != "" {
		of, err := findProject(ctx, s.store.Reader, r.GetProject())
		if err != nil {
			return nil, err
		}
		query.Where(freshness.ProjectID(of.ID))
	}
	if len(r.GetState()) > 0 {
		states := make([]int32, len(r.GetState()))
		for i, word := range r.GetState() {
			states[i] = int32(judge.Parse(word))
		}
		query.Where(store.OneOf(freshness.FieldState, states))
	}
	if r.GetTool() != "" {
		query.Where(freshness.Tool(r.GetTool()))
	}
	if r.GetScannerVersion() != "" {
		query.Where(freshness.ScannerVersion(r.GetScannerVersion()))
	}
	if continued {
		query.Where(func(sel *entsql.Selector) {
			sel.Where(entsql.CompositeLT([]string{sel.C(freshness.FieldState), sel.C(freshness.FieldID)}, key.Order, key.ID))
		})
	}
	limit := pageSize(r.Limit)
	rows, err := query.Order(ent.Desc(freshness.FieldState, freshness.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &scansv1.ListFreshnessResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		out.Cursor = page.Encode(digest, page.Key{Order: int64(last.State), ID: last.ID})
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ProjectID
	}
	names, err := projectNames(ctx, s.store.Reader, ids)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, row := range rows {
		one, err := convertFreshness(row, names[row.ProjectID], now)
		if err != nil {
			return nil, err
		}
		out.Freshness = append(out.Freshness, one)
	}
	return out, nil
}

// inUse leaves out the rows of archived projects.
func inUse(s *entsql.Selector) {
	of := entsql.Dialect(s.Dialect()).Table(project.Table).As("used")
	s.Where(entsql.Exists(entsql.Dialect(s.Dialect()).Select(of.C(project.FieldID)).From(of).Where(entsql.And(
		entsql.ColumnsEQ(of.C(project.FieldID), s.C(freshness.FieldProjectID)),
		entsql.ColumnsEQ(of.C(project.FieldDeploymentID), s.C(freshness.FieldDeploymentID)),
		entsql.IsNull(of.C(project.FieldArchivedAt)),
	))))
}

func convertFreshness(row *ent.Freshness, projectName string, now time.Time) (*scansv1.AnalysisFreshness, error) {
	h := &storev1.Freshness{}
	if err := proto.Unmarshal(row.Content, h); err != nil {
		return nil, err
	}
	state, sizes, lateAt := judge.State(row.State), judge.SizesOf(h), store.Micros(judge.LateAt(h))
	out := &scansv1.AnalysisFreshness{
		ProjectId: row.ProjectID, Project: projectName, Ref: row.Ref, Tool: row.Tool, Category: row.AnalysisCategory,
		State: state.String(), Since: timestamp(row.Since), Reason: judge.Reason(h, state, now),
		LastScan:          &scansv1.FreshnessScan{Id: row.LastScanID, At: timestamp(h.GetLastAt()), Status: scansv1.ScanStatus(scansv1.ScanStatus_value[h.GetLastStatus()])},
		UsualIntervalDays: int32(judge.UsualOf(h).Days), LateAt: timestamp(lateAt),
		Results: convertSize(sizes.Results), Files: convertSize(sizes.Files), Rules: convertSize(sizes.Rules),
		ScannerVersion: judge.ToolVersion(h),
	}
	if last := judge.Last(h); last != nil {
		out.LastSuccessAt = timestamp(last.GetAt())
	}
	return out, nil
}

func convertSize(s judge.Size) *scansv1.FreshnessCount {
	out := &scansv1.FreshnessCount{}
	if s.Now >= 0 {
		out.Now = &s.Now
	}
	if s.Before >= 0 {
		out.Before = &s.Before
	}
	return out
}
