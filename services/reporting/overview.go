package reporting

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/reporting/bucket"
)

// Overview is the service group "overview".
type Overview struct {
	reportingv1.UnimplementedOverviewReportsServiceServer
	reports *Reports
}

// NewOverview serves the overview of the same findings as reports.
func NewOverview(reports *Reports) *Overview { return &Overview{reports: reports} }

// maxProjects is the number of projects in an overview.
const maxProjects = 10

// all is the only group.
var all = columns.Grouping{Groups: 1}

// GetOverviewReport compares two periods.
func (s *Overview) GetOverviewReport(ctx context.Context, q *reportingv1.GetOverviewReportRequest) (*reportingv1.GetOverviewReportResponse, error) {
	filters := proto.CloneOf(q.GetFilters())
	if filters != nil {
		filters.TimeBucketSize = reportingv1.TimeBucketSize_TIME_BUCKET_SIZE_UNSPECIFIED
	}
	r, err := s.reports.begin(ctx, filters, primary)
	if err != nil {
		return nil, err
	}
	compared := r.period.Previous()
	if with := q.GetCompareWith(); with != nil {
		if compared, err = bucket.Of(timeOf(with.GetSince()), timeOf(with.GetUntil()), time.Now()); err != nil {
			return nil, apierr.InvalidArgument("compareWith", "compareWith: %s", err)
		}
	}
	return &reportingv1.GetOverviewReportResponse{ThisPeriod: r.summary(r.period), ComparedPeriod: r.summary(compared), Projects: r.mostOpen(compared)}, nil
}

// summary computes the numbers of a period. Nothing is known about one that has not begun.
func (r *report) summary(p bucket.Period) *reportingv1.GetOverviewReportResponse_Period {
	out := &reportingv1.GetOverviewReportResponse_Period{TimePeriod: protoPeriod(p), Open: &reportingv1.SeverityCounts{}, TimeToFix: &reportingv1.TimeToFix{}}
	since, ends := bound(p.Since), []uint32{min(bound(p.Until), r.now)}
	if since >= r.now {
		return out
	}
	open := r.columns.Backlog(&r.Filter, bySeverity(), ends)
	out.Open = severityCounts([]int32{open[0][0], open[1][0], open[2][0], open[3][0]})
	out.MedianOpenAge = r.columns.MedianAges(&r.Filter, &all, ends)[0][0]
	moves := r.columns.Activity(&r.Filter, since, ends)[0]
	out.Opened, out.Fixed, out.Ignored, out.Removed = moves[columns.Opened], moves[columns.WasFixed], moves[columns.WasIgnored], moves[columns.WasRemoved]
	out.ProvisionallyIgnored, out.Net = moves[columns.WasProvisionallyIgnored], net(moves)
	out.TimeToFix = timeToFix(r.columns.FixTimes(&r.Filter, &all, since, ends)[0][0])
	return out
}

// mostOpen lists the projects with the most open findings at the end of the period.
func (r *report) mostOpen(compared bucket.Period) []*reportingv1.GetOverviewReportResponse_ProjectCounts {
	var list []*reportingv1.GetOverviewReportResponse_ProjectCounts
	r.byProject(bySeverity(), r.end(), func(p *ent.Project, open []int32) {
		list = append(list, &reportingv1.GetOverviewReportResponse_ProjectCounts{ProjectId: p.ID, Name: p.Name, Open: severityCounts(open)})
	})
	slices.SortFunc(list, func(a, b *reportingv1.GetOverviewReportResponse_ProjectCounts) int {
		return cmp.Or(cmp.Compare(b.GetOpen().GetTotal(), a.GetOpen().GetTotal()), cmp.Compare(a.GetName(), b.GetName()))
	})
	list = list[:min(len(list), maxProjects)]
	before := map[int64]int32{}
	r.byProject(bySeverity(), min(bound(compared.Until), r.now), func(p *ent.Project, open []int32) { before[p.ID] = severityCounts(open).GetTotal() })
	for _, p := range list {
		p.OpenBefore = before[p.GetProjectId()]
	}
	return list
}

// GetTimeToFixReport computes how long findings were open before they were fixed.
func (s *Overview) GetTimeToFixReport(ctx context.Context, q *reportingv1.GetTimeToFixReportRequest) (*reportingv1.GetTimeToFixReportResponse, error) {
	r, err := s.reports.begin(ctx, q.GetFilters(), primary)
	if err != nil {
		return nil, err
	}
	// An extra first bucket is the previous period.
	since := min(bound(r.period.Since), r.now)
	times := r.columns.FixTimes(&r.Filter, bySeverity(), bound(r.period.Previous().Since), append([]uint32{since}, r.ends()...))
	out := &reportingv1.GetTimeToFixReportResponse{
		ThisPeriod: fixBucket(protoPeriod(r.period), times, 1, len(r.buckets)+1), PreviousPeriod: fixBucket(protoPeriod(r.period.Previous()), times, 0, 1),
	}
	for i := range r.buckets {
		out.Buckets = append(out.Buckets, fixBucket(r.timePeriod(i), times, i+1, i+2))
	}
	return out, nil
}

// fixBucket joins the buckets from first to end of the four severities.
func fixBucket(at *reportingv1.TimePeriod, times [][][]uint32, first, end int) *reportingv1.GetTimeToFixReportResponse_Bucket {
	bySeverity := make([]*reportingv1.TimeToFix, len(times))
	var every []uint32
	for severity, buckets := range times {
		joined := slices.Concat(buckets[first:end]...)
		bySeverity[severity], every = timeToFix(joined), append(every, joined...)
	}
	return &reportingv1.GetTimeToFixReportResponse_Bucket{
		TimePeriod: at, All: timeToFix(every), Low: bySeverity[0], Medium: bySeverity[1], High: bySeverity[2], Critical: bySeverity[3],
	}
}

func timeToFix(times []uint32) *reportingv1.TimeToFix {
	median, p90 := columns.Quantiles(times)
	return &reportingv1.TimeToFix{Fixed: int32(len(times)), MedianSeconds: median, P90Seconds: p90}
}

func severityCounts(open []int32) *reportingv1.SeverityCounts {
	return &reportingv1.SeverityCounts{Low: open[0], Medium: open[1], High: open[2], Critical: open[3], Total: open[0] + open[1] + open[2] + open[3]}
}

func protoPeriod(p bucket.Period) *reportingv1.TimePeriod {
	return &reportingv1.TimePeriod{Since: timestamppb.New(p.Since), Until: timestamppb.New(p.Until)}
}
