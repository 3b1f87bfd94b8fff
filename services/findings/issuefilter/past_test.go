package issuefilter

import (
	"strings"
	"testing"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
)

// What a finding with a status may have matched, and what is left of the filter.
func TestPast(t *testing.T) {
	t.Parallel()
	all := []string{"", "open", "ignored", "reviewing", "fixing", "provisionally_ignored", "fixed", "removed"}
	for name, c := range map[string]struct {
		filter  *findingsv1.IssuesFilter
		verdict bool
		want    string
	}{
		"nothing that changes": {&findingsv1.IssuesFilter{Refs: []string{"main"}}, true, ""},
		"the open tab":         {&findingsv1.IssuesFilter{Tab: findingsv1.IssueTab_ISSUE_TAB_OPEN}, false, "open"},
		"the closed tab":       {&findingsv1.IssuesFilter{Tab: findingsv1.IssueTab_ISSUE_TAB_CLOSED}, false, "fixed"},
		"ignored in code": {&findingsv1.IssuesFilter{AggregateIssueStates: []findingsv1.AggregateIssueState{
			findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_CODE, findingsv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_FIXING,
		}}, false, "ignored fixing"},
		"unresolved": {&findingsv1.IssuesFilter{Status: []findingsv1.IssueStatus{findingsv1.IssueStatus_ISSUE_STATUS_UNRESOLVED}}, false,
			"open ignored reviewing fixing provisionally_ignored"},
		"fixed lately": {&findingsv1.IssuesFilter{
			TimeFilter: findingsv1.TimeFilter_TIME_FILTER_FIXED_AT, RelativeSince: findingsv1.RelativeSince_RELATIVE_SINCE_ONE_DAY,
		}, false, "fixed"},
		"a reason": {&findingsv1.IssuesFilter{TriageReasons: []findingsv1.FindingTriageReason{
			findingsv1.FindingTriageReason_FINDING_TRIAGE_REASON_FALSE_POSITIVE,
		}}, false, "ignored fixed removed"},
		"a verdict, and a change of the status":  {&findingsv1.IssuesFilter{AiVerdicts: []findingsv1.Verdict{findingsv1.Verdict_VERDICT_NO_VERDICT}}, false, ""},
		"a verdict of open ones, and its change": {&findingsv1.IssuesFilter{Tab: findingsv1.IssueTab_ISSUE_TAB_OPEN, AiVerdicts: []findingsv1.Verdict{findingsv1.Verdict_VERDICT_NO_VERDICT}}, true, "open"},
	} {
		past := PastOf(c.filter, c.verdict)
		var got []string
		for _, status := range all {
			if past.Matched(status) {
				got = append(got, status)
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
		if again := PastOf(past.Rest, c.verdict); len(again.terms) > 0 {
			t.Errorf("%s: the rest still has %v", name, past.Rest)
		}
	}
}
