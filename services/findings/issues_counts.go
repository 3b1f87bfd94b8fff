package findings

import (
	"context"
	"slices"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/findings/lifecycle"
)

// GetIssueCounts counts findings by state, exactly: from the columns in memory, which have all changes that were
// committed before the call.
func (s *Issues) GetIssueCounts(ctx context.Context, r *findingsv1.GetIssueCountsRequest) (*findingsv1.GetIssueCountsResponse, error) {
	of, chosen, err := s.chooseAll(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &findingsv1.GetIssueCountsResponse{}
	for kind, n := range of.Count(&chosen.Filter).Kinds {
		addCount(out, of.Kinds()[kind], int64(n))
	}
	inArchived := chosen.Filter
	if !r.GetFilter().GetIncludeArchived() {
		inArchived.Places = chosen.Others
	}
	if slices.Contains(inArchived.Places, true) {
		for _, n := range of.Count(&inArchived).Kinds {
			out.Archived += int64(n)
		}
	}
	return out, nil
}

func addCount(out *findingsv1.GetIssueCountsResponse, facts columns.Facts, n int64) {
	switch facts.Status() {
	case lifecycle.Open:
		out.Open += n
	case lifecycle.Reviewing:
		out.Reviewing += n
	case lifecycle.Fixing:
		out.Fixing += n
	case lifecycle.ProvisionallyIgnored:
		out.ProvisionallyIgnored += n
	case lifecycle.Fixed:
		out.Closed += n
	case lifecycle.Ignored:
		out.Ignored += n
		addIgnored(out, facts, n)
	}
}

func addIgnored(out *findingsv1.GetIssueCountsResponse, facts columns.Facts, n int64) {
	if state, _, _ := facts.Word("triage_state"); state != lifecycle.Ignored {
		out.IgnoredCode += n
		return
	}
	switch reason, _, _ := facts.Word("triage_reason"); reason {
	case "false_positive":
		out.IgnoredFalsePositive += n
	case "acceptable_risk":
		out.IgnoredAcceptableRisk += n
	case "no_time":
		out.IgnoredNoTime += n
	case "duplicate":
		out.IgnoredDuplicate += n
	default:
		out.IgnoredNoTriageReason += n
	}
}
