package reporting

import (
	"context"

	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/findings/columns"
)

// GetFindingsActivityReport counts the findings that entered and left the backlog. The counts of a bucket or period add
// up to the change of the backlog.
func (s *Reports) GetFindingsActivityReport(ctx context.Context, q *reportingv1.GetFindingsActivityReportRequest) (*reportingv1.GetFindingsActivityReportResponse, error) {
	r, err := s.begin(ctx, q.GetFilters(), primary)
	if err != nil {
		return nil, err
	}
	// An extra first bucket is the previous period.
	since := bound(r.period.Since)
	moves := r.columns.Activity(&r.Filter, bound(r.period.Previous().Since), append([]uint32{min(since, r.now)}, r.ends()...))
	out := &reportingv1.GetFindingsActivityReportResponse{}
	var sum [columns.Moves]int32
	for i, m := range moves[1:] {
		for move, n := range m {
			sum[move] += n
		}
		out.Buckets = append(out.Buckets, &reportingv1.GetFindingsActivityReportResponse_Bucket{
			TimePeriod: r.timePeriod(i), Opened: m[columns.Opened], Ignored: m[columns.WasIgnored], Fixed: m[columns.WasFixed],
			Removed: m[columns.WasRemoved], ProvisionallyIgnored: m[columns.WasProvisionallyIgnored], Net: net(m),
		})
	}
	out.ThisPeriod, out.PreviousPeriod = totals(sum), totals(moves[0])
	out.TotalNew, out.TotalFixed, out.TotalIgnored = out.ThisPeriod.TotalNew, out.ThisPeriod.TotalFixed, out.ThisPeriod.TotalIgnored
	out.TotalNetNew, out.TotalProvisionallyIgnored = out.ThisPeriod.TotalNetNew, out.ThisPeriod.TotalProvisionallyIgnored
	return out, nil
}

func net(m [columns.Moves]int32) int32 {
	n := m[columns.Opened]
	for _, left := range m[columns.Opened+1:] {
		n -= left
	}
	return n
}

func totals(m [columns.Moves]int32) *reportingv1.GetFindingsActivityReportResponse_SummaryTotals {
	return &reportingv1.GetFindingsActivityReportResponse_SummaryTotals{
		TotalNew: m[columns.Opened], TotalFixed: m[columns.WasFixed], TotalIgnored: m[columns.WasIgnored],
		TotalNetNew: net(m), TotalProvisionallyIgnored: m[columns.WasProvisionallyIgnored],
	}
}

// GetGuardrailsActivityReport counts the outcomes of findings in pull requests.
func (s *Reports) GetGuardrailsActivityReport(ctx context.Context, q *reportingv1.GetGuardrailsActivityReportRequest) (*reportingv1.GetGuardrailsActivityReportResponse, error) {
	r, err := s.begin(ctx, q.GetFilters(), others)
	if err != nil {
		return nil, err
	}
	out := &reportingv1.GetGuardrailsActivityReportResponse{}
	for i, n := range r.columns.Appeared(&r.Filter, bound(r.period.Since), r.ends()) {
		out.Buckets = append(out.Buckets, &reportingv1.GetGuardrailsActivityReportResponse_Bucket{
			TimePeriod: r.timePeriod(i), Silenced: n[columns.Silenced], Open: n[columns.StillOpen], Fixed: n[columns.BecameFixed],
			Ignored: n[columns.BecameIgnored], ProvisionallyIgnored: n[columns.BecameProvisionallyIgnored],
		})
		out.TotalFixed += n[columns.BecameFixed]
		out.TotalOpened += appeared(n)
	}
	return out, nil
}

// GetGuardrailsAdoptionReport counts how many of these findings developers were shown.
func (s *Reports) GetGuardrailsAdoptionReport(ctx context.Context, q *reportingv1.GetGuardrailsAdoptionReportRequest) (*reportingv1.GetGuardrailsAdoptionReportResponse, error) {
	r, err := s.begin(ctx, q.GetFilters(), others)
	if err != nil {
		return nil, err
	}
	out := &reportingv1.GetGuardrailsAdoptionReportResponse{}
	for i, n := range r.columns.Appeared(&r.Filter, bound(r.period.Since), r.ends()) {
		all := appeared(n)
		shown := all - n[columns.Silenced]
		out.Buckets = append(out.Buckets, &reportingv1.GetGuardrailsAdoptionReportResponse_Bucket{
			TimePeriod: r.timePeriod(i), ShownToDeveloperCount: shown, TotalCount: all,
		})
		out.TotalShownToDeveloper += shown
		out.TotalOpened += all
	}
	return out, nil
}

func appeared(n [columns.Outcomes]int32) (all int32) {
	for _, count := range n {
		all += count
	}
	return all
}
