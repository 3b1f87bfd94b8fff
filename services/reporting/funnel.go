package reporting

import (
	"context"

	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/findings/columns"
)

// GetFindingsFunnelReport narrows the open findings at the end of the period to the most urgent ones. A period in the
// future has none.
func (s *Reports) GetFindingsFunnelReport(ctx context.Context, q *reportingv1.GetFindingsFunnelReportRequest) (*reportingv1.GetFindingsFunnelReportResponse, error) {
	r, err := s.begin(ctx, q.GetFilters(), primary)
	if err != nil {
		return nil, err
	}
	stats := map[columns.Product]*reportingv1.GetFindingsFunnelReportResponse_FunnelStats{columns.Code: {}, columns.SCA: {}, columns.Secrets: {}}
	out := &reportingv1.GetFindingsFunnelReportResponse{}
	var open []int32
	if !r.future() {
		open = r.columns.OpenByAttr(&r.Filter, r.end())
	}
	for i, n := range open {
		of, ok := stats[columns.Attr(i).Product()]
		if n == 0 || !ok {
			continue
		}
		possible, urgent := exploitable(columns.Attr(i))
		of.AllFindings += n
		out.AllFindings += n
		if possible {
			of.PossiblyExploitable += n
			out.PossiblyExploitable += n
		}
		if possible && urgent {
			of.PriorityFindings += n
			out.PriorityFindings += n
		}
	}
	out.ByProduct = map[string]*reportingv1.GetFindingsFunnelReportResponse_FunnelStats{
		"code": stats[columns.Code], "sca": stats[columns.SCA], "secrets": stats[columns.Secrets],
	}
	return out, nil
}

// exploitable reports whether a finding may be exploitable (nothing says it is harmless), and whether it is urgent:
// severe, with evidence that it is exploitable.
func exploitable(a columns.Attr) (possible, urgent bool) {
	words := a.Words()
	known := words.Verdict == "true_positive"
	possible = words.Verdict != "false_positive"
	switch a.Product() {
	case columns.SCA:
		possible = possible && words.Exposure != "unreachable"
		known = known || words.Exposure != "" && words.Exposure != "unreachable"
	case columns.Secrets:
		possible = possible && words.Validation != "invalid"
		known = known || words.Validation == "valid"
	}
	return possible, known && (words.Severity == "high" || words.Severity == "critical")
}
