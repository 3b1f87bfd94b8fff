package issuefilter

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent/finding"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
)

// Past is the part of a filter that changes of findings decide, for a finding as it was before a change. Of that time
// only the status is known, so it says what may have been.
type Past struct {
	// Rest is the filter without this part: what a change does not affect.
	Rest  *findingsv1.IssuesFilter
	terms []term
}

// PastOf returns the part of a filter that changes of the status decide; verdict adds the part that AI verdicts decide.
func PastOf(f *findingsv1.IssuesFilter, verdict bool) *Past {
	rest := proto.CloneOf(f)
	rest.Status, rest.Tab, rest.AggregateIssueStates, rest.TriageReasons = nil, 0, nil, nil
	changing := &findingsv1.IssuesFilter{
		Status: f.GetStatus(), Tab: f.GetTab(), AggregateIssueStates: f.GetAggregateIssueStates(), TriageReasons: f.GetTriageReasons(),
	}
	switch f.GetTimeFilter() {
	case findingsv1.TimeFilter_TIME_FILTER_TRIAGED_AT, findingsv1.TimeFilter_TIME_FILTER_FIXED_AT:
		changing.TimeFilter, changing.Since, changing.Until, changing.RelativeSince = f.GetTimeFilter(), f.GetSince(), f.GetUntil(), f.GetRelativeSince()
		rest.TimeFilter, rest.Since, rest.Until, rest.RelativeSince = 0, nil, nil, 0
	}
	if verdict {
		changing.AiVerdicts, rest.AiVerdicts = f.GetAiVerdicts(), nil
	}
	c := &Conditions{now: time.Now()}
	c.times(changing)
	c.states(changing)
	c.assistance(changing)
	p := &Past{Rest: rest}
	for _, one := range c.List {
		p.terms = append(p.terms, *one.term)
	}
	return p
}

// Matched reports whether a finding with the status may have matched. It is false if the filter does not have this
// part: a change then takes no finding out.
func (p *Past) Matched(status string) bool {
	return len(p.terms) > 0 && status != "" && !slices.ContainsFunc(p.terms, func(t term) bool { return !t.mayHold(status) })
}

// mayHold reports whether a finding with the status may satisfy a term.
func (t term) mayHold(status string) bool {
	closed := status == lifecycle.Fixed || status == lifecycle.Removed
	switch {
	case t.any != nil:
		return slices.ContainsFunc(t.any, func(option term) bool { return option.mayHold(status) })
	case t.all != nil:
		return !slices.ContainsFunc(t.all, func(part term) bool { return !part.mayHold(status) })
	case t.column == finding.FieldStatus:
		return slices.Contains(t.words, status) != t.not
	case t.column == finding.FieldState && closed:
		return slices.Contains(t.words, status)
	case t.column == finding.FieldState:
		return slices.ContainsFunc(t.words, lifecycle.Seen)
	case t.column == finding.FieldTriageReason && !t.null: // only decisions to ignore have reasons
		return status == lifecycle.Ignored || closed
	}
	return true
}
