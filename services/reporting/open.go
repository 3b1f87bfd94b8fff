package reporting

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/rule"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/internal/store"
)

// bucketsOf builds a report over time: figures counts per group and bucket end, and bucket formats the counts. Buckets
// in the future are empty.
func bucketsOf[B any](
	ctx context.Context, s *Reports, filters *reportingv1.ReportFilters, by *columns.Grouping,
	figures func(*columns.Snapshot, *columns.Filter, *columns.Grouping, []uint32) [][]int32,
	bucket func(at *reportingv1.TimePeriod, groups []int32) B,
) (list []B, err error) {
	r, err := s.begin(ctx, filters, primary)
	if err != nil {
		return nil, err
	}
	ends := r.ends()[:len(r.begun())]
	var found [][]int32
	if len(ends) > 0 {
		found = figures(r.columns, &r.Filter, by, ends)
	}
	for i := range r.buckets {
		groups := make([]int32, by.Groups)
		if i < len(ends) {
			for group := range groups {
				groups[group] = found[group][i]
			}
		}
		list = append(list, bucket(r.timePeriod(i), groups))
	}
	return list, nil
}

// GetMedianOpenAgeByProductReport is operation 6 of the contract.
func (s *Reports) GetMedianOpenAgeByProductReport(ctx context.Context, q *reportingv1.GetMedianOpenAgeByProductReportRequest) (*reportingv1.GetMedianOpenAgeByProductReportResponse, error) {
	buckets, err := bucketsOf(ctx, s, q.GetFilters(), byProduct(), (*columns.Snapshot).MedianAges, func(at *reportingv1.TimePeriod, n []int32) *reportingv1.GetMedianOpenAgeByProductReportResponse_Bucket {
		return &reportingv1.GetMedianOpenAgeByProductReportResponse_Bucket{TimePeriod: at, Code: n[0], Sca: n[1], Secrets: n[2]}
	})
	return &reportingv1.GetMedianOpenAgeByProductReportResponse{Buckets: buckets}, err
}

// GetMedianOpenAgeBySeverityReport is the same by severity.
func (s *Reports) GetMedianOpenAgeBySeverityReport(ctx context.Context, q *reportingv1.GetMedianOpenAgeBySeverityReportRequest) (*reportingv1.GetMedianOpenAgeBySeverityReportResponse, error) {
	buckets, err := bucketsOf(ctx, s, q.GetFilters(), bySeverity(), (*columns.Snapshot).MedianAges, func(at *reportingv1.TimePeriod, n []int32) *reportingv1.GetMedianOpenAgeBySeverityReportResponse_Bucket {
		return &reportingv1.GetMedianOpenAgeBySeverityReportResponse_Bucket{TimePeriod: at, Low: n[0], Medium: n[1], High: n[2], Critical: n[3]}
	})
	return &reportingv1.GetMedianOpenAgeBySeverityReportResponse{Buckets: buckets}, err
}

// GetBacklogByProductReport counts open findings by product.
func (s *Reports) GetBacklogByProductReport(ctx context.Context, q *reportingv1.GetBacklogByProductReportRequest) (*reportingv1.GetBacklogByProductReportResponse, error) {
	buckets, err := bucketsOf(ctx, s, q.GetFilters(), byProduct(), (*columns.Snapshot).Backlog, func(at *reportingv1.TimePeriod, n []int32) *reportingv1.GetBacklogByProductReportResponse_Bucket {
		return &reportingv1.GetBacklogByProductReportResponse_Bucket{TimePeriod: at, Code: n[0], Sca: n[1], Secrets: n[2]}
	})
	return &reportingv1.GetBacklogByProductReportResponse{Buckets: buckets}, err
}

// GetBacklogBySeverityReport counts open findings by severity.
func (s *Reports) GetBacklogBySeverityReport(ctx context.Context, q *reportingv1.GetBacklogBySeverityReportRequest) (*reportingv1.GetBacklogBySeverityReportResponse, error) {
	buckets, err := bucketsOf(ctx, s, q.GetFilters(), bySeverity(), (*columns.Snapshot).Backlog, func(at *reportingv1.TimePeriod, n []int32) *reportingv1.GetBacklogBySeverityReportResponse_Bucket {
		return &reportingv1.GetBacklogBySeverityReportResponse_Bucket{TimePeriod: at, Low: n[0], Medium: n[1], High: n[2], Critical: n[3]}
	})
	return &reportingv1.GetBacklogBySeverityReportResponse{Buckets: buckets}, err
}

// GetBacklogByRuleReport counts open findings by rule. Rules of several tools with the same name count together.
func (s *Reports) GetBacklogByRuleReport(ctx context.Context, q *reportingv1.GetBacklogByRuleReportRequest) (*reportingv1.GetBacklogByRuleReportResponse, error) {
	r, err := s.begin(ctx, q.GetFilters(), primary)
	if err != nil {
		return nil, err
	}
	rules := r.columns.Rules()
	by := &columns.Grouping{Groups: len(rules), Rule: make([]int32, len(rules))}
	for i := range rules {
		by.Rule[i] = int32(i)
	}
	ends := r.ends()[:len(r.begun())]
	open := make([][]int32, len(rules))
	if len(ends) > 0 {
		open = r.columns.Backlog(&r.Filter, by, ends)
	}
	names, err := s.ruleNames(ctx, rules, open)
	if err != nil {
		return nil, err
	}
	out := &reportingv1.GetBacklogByRuleReportResponse{}
	for i := range r.buckets {
		b := &reportingv1.GetBacklogByRuleReportResponse_Bucket{TimePeriod: r.timePeriod(i), Open: map[string]int32{}}
		for n, id := range rules {
			if i < len(ends) && open[n][i] > 0 {
				b.Open[names[id]] += open[n][i]
			}
		}
		out.Buckets = append(out.Buckets, b)
	}
	return out, nil
}

// ruleNames returns the names of the rules with open findings.
func (s *Reports) ruleNames(ctx context.Context, rules []int64, open [][]int32) (map[int64]string, error) {
	var ids []int64
	for i, id := range rules {
		for _, count := range open[i] {
			if count > 0 {
				ids = append(ids, id)
				break
			}
		}
	}
	rows, err := s.store.Reader.Rule.Query().Where(func(q *entsql.Selector) { q.Where(store.InIDs(q.C(rule.FieldID), ids)) }).
		Select(rule.FieldID, rule.FieldName).All(ctx)
	names := make(map[int64]string, len(rows))
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	return names, err
}

// GetFindingsByProjectAndProductReport counts the findings open at the end of the period.
func (s *Reports) GetFindingsByProjectAndProductReport(ctx context.Context, q *reportingv1.GetFindingsByProjectAndProductReportRequest) (*reportingv1.GetFindingsByProjectAndProductReportResponse, error) {
	r, err := s.begin(ctx, q.GetFilters(), primary)
	if err != nil {
		return nil, err
	}
	out := &reportingv1.GetFindingsByProjectAndProductReportResponse{
		ByProject: map[string]*reportingv1.GetFindingsByProjectAndProductReportResponse_ProjectStats{},
	}
	r.byProject(byProduct(), r.end(), func(p *ent.Project, open []int32) {
		out.ByProject[p.Name] = &reportingv1.GetFindingsByProjectAndProductReportResponse_ProjectStats{Code: open[0], Sca: open[1], Secrets: open[2]}
	})
	return out, nil
}

// GetFindingsByProjectAndSeverityReport is the same by severity.
func (s *Reports) GetFindingsByProjectAndSeverityReport(ctx context.Context, q *reportingv1.GetFindingsByProjectAndSeverityReportRequest) (*reportingv1.GetFindingsByProjectAndSeverityReportResponse, error) {
	r, err := s.begin(ctx, q.GetFilters(), primary)
	if err != nil {
		return nil, err
	}
	out := &reportingv1.GetFindingsByProjectAndSeverityReportResponse{
		ByProject: map[string]*reportingv1.GetFindingsByProjectAndSeverityReportResponse_ProjectStats{},
	}
	r.byProject(bySeverity(), r.end(), func(p *ent.Project, open []int32) {
		out.ByProject[p.Name] = &reportingv1.GetFindingsByProjectAndSeverityReportResponse_ProjectStats{
			Low: open[0], Medium: open[1], High: open[2], Critical: open[3],
		}
	})
	return out, nil
}

// byProject yields the counts by group of each project with open findings at a time; none of a period in the future.
func (r *report) byProject(by *columns.Grouping, at uint32, give func(p *ent.Project, open []int32)) {
	if r.future() {
		return
	}
	numberOf := map[int64]int{}
	var counted []*ent.Project
	combined := &columns.Grouping{Attr: by.Attr, Place: make([]int32, len(r.columns.Places()))}
	for i, place := range r.columns.Places() {
		p, ok := r.projects[place.Project]
		if !ok {
			continue
		}
		number, known := numberOf[p.ID]
		if !known {
			number = len(counted)
			numberOf[p.ID], counted = number, append(counted, p)
		}
		combined.Place[i] = int32(number * by.Groups)
	}
	combined.Groups = len(counted) * by.Groups
	open := r.columns.Backlog(&r.Filter, combined, []uint32{at})
	for number, p := range counted {
		list, total := make([]int32, by.Groups), int32(0)
		for group := range list {
			list[group] = open[number*by.Groups+group][0]
			total += list[group]
		}
		if total > 0 {
			give(p, list)
		}
	}
}
