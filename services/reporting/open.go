package reporting

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/rule"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/reporting/columns"
)

// GetMedianOpenAgeByProductReport is operation 6 of the contract.
func (s *Reports) GetMedianOpenAgeByProductReport(ctx context.Context, q *reportingv1.GetMedianOpenAgeByProductReportRequest) (*reportingv1.GetMedianOpenAgeByProductReportResponse, error) {
	r, err := s.begin(ctx, q.GetFilters(), primary)
	if err != nil {
		return nil, err
	}
	ages := r.columns.MedianAges(&r.Filter, byProduct(), r.ends())
	out := &reportingv1.GetMedianOpenAgeByProductReportResponse{}
	for i := range r.buckets {
		out.Buckets = append(out.Buckets, &reportingv1.GetMedianOpenAgeByProductReportResponse_Bucket{
			TimePeriod: r.timePeriod(i), Code: ages[0][i], Sca: ages[1][i], Secrets: ages[2][i],
		})
	}
	return out, nil
}

// GetMedianOpenAgeBySeverityReport is the same by severity.
func (s *Reports) GetMedianOpenAgeBySeverityReport(ctx context.Context, q *reportingv1.GetMedianOpenAgeBySeverityReportRequest) (*reportingv1.GetMedianOpenAgeBySeverityReportResponse, error) {
	r, err := s.begin(ctx, q.GetFilters(), primary)
	if err != nil {
		return nil, err
	}
	ages := r.columns.MedianAges(&r.Filter, bySeverity(), r.ends())
	out := &reportingv1.GetMedianOpenAgeBySeverityReportResponse{}
	for i := range r.buckets {
		out.Buckets = append(out.Buckets, &reportingv1.GetMedianOpenAgeBySeverityReportResponse_Bucket{
			TimePeriod: r.timePeriod(i), Low: ages[0][i], Medium: ages[1][i], High: ages[2][i], Critical: ages[3][i],
		})
	}
	return out, nil
}

// GetBacklogByProductReport counts open findings by product.
func (s *Reports) GetBacklogByProductReport(ctx context.Context, q *reportingv1.GetBacklogByProductReportRequest) (*reportingv1.GetBacklogByProductReportResponse, error) {
	r, err := s.begin(ctx, q.GetFilters(), primary)
	if err != nil {
		return nil, err
	}
	open := r.columns.Backlog(&r.Filter, byProduct(), r.ends())
	out := &reportingv1.GetBacklogByProductReportResponse{}
	for i := range r.buckets {
		out.Buckets = append(out.Buckets, &reportingv1.GetBacklogByProductReportResponse_Bucket{
			TimePeriod: r.timePeriod(i), Code: open[0][i], Sca: open[1][i], Secrets: open[2][i],
		})
	}
	return out, nil
}

// GetBacklogBySeverityReport counts open findings by severity.
func (s *Reports) GetBacklogBySeverityReport(ctx context.Context, q *reportingv1.GetBacklogBySeverityReportRequest) (*reportingv1.GetBacklogBySeverityReportResponse, error) {
	r, err := s.begin(ctx, q.GetFilters(), primary)
	if err != nil {
		return nil, err
	}
	open := r.columns.Backlog(&r.Filter, bySeverity(), r.ends())
	out := &reportingv1.GetBacklogBySeverityReportResponse{}
	for i := range r.buckets {
		out.Buckets = append(out.Buckets, &reportingv1.GetBacklogBySeverityReportResponse_Bucket{
			TimePeriod: r.timePeriod(i), Low: open[0][i], Medium: open[1][i], High: open[2][i], Critical: open[3][i],
		})
	}
	return out, nil
}

// GetBacklogByRuleReport counts open findings by rule. Rules of several tools with one name count together.
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
	open := r.columns.Backlog(&r.Filter, by, r.ends())
	names, err := s.ruleNames(ctx, rules, open)
	if err != nil {
		return nil, err
	}
	out := &reportingv1.GetBacklogByRuleReportResponse{}
	for i := range r.buckets {
		b := &reportingv1.GetBacklogByRuleReportResponse_Bucket{TimePeriod: r.timePeriod(i), Open: map[string]int32{}}
		for n, id := range rules {
			if count := open[n][i]; count > 0 {
				b.Open[names[id]] += count
			}
		}
		out.Buckets = append(out.Buckets, b)
	}
	return out, nil
}

// ruleNames returns the names of the rules that had open findings.
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
	r.byProject(byProduct(), func(name string, open []int32) {
		out.ByProject[name] = &reportingv1.GetFindingsByProjectAndProductReportResponse_ProjectStats{Code: open[0], Sca: open[1], Secrets: open[2]}
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
	r.byProject(bySeverity(), func(name string, open []int32) {
		out.ByProject[name] = &reportingv1.GetFindingsByProjectAndSeverityReportResponse_ProjectStats{
			Low: open[0], Medium: open[1], High: open[2], Critical: open[3],
		}
	})
	return out, nil
}

// byProject gives, for each project with open findings at the end of the period, their numbers by group.
func (r *report) byProject(by *columns.Grouping, give func(name string, open []int32)) {
	numberOf := map[int64]int{}
	var names []string
	combined := &columns.Grouping{Attr: by.Attr, Place: make([]int32, len(r.columns.Places()))}
	for i, place := range r.columns.Places() {
		p, ok := r.projects[place.Project]
		if !ok {
			continue
		}
		number, known := numberOf[p.ID]
		if !known {
			number = len(names)
			numberOf[p.ID], names = number, append(names, p.Name)
		}
		combined.Place[i] = int32(number * by.Groups)
	}
	combined.Groups = len(names) * by.Groups
	open := r.columns.Backlog(&r.Filter, combined, []uint32{r.end()})
	for number, name := range names {
		list, total := make([]int32, by.Groups), int32(0)
		for group := range list {
			list[group] = open[number*by.Groups+group][0]
			total += list[group]
		}
		if total > 0 {
			give(name, list)
		}
	}
}
