package backtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
)

// TestSteps: the events of a finding give its states. An event is "kind to" or "kind to reason", and its position is
// its time.
func TestSteps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		what   string
		events []string
		// now is the stored state and triage state.
		now, want string
	}{
		{"created", []string{"created open"}, "unresolved untriaged", "1 unresolved untriaged"},
		{"created muted", []string{"created ignored"}, "muted untriaged", "1 muted untriaged"},
		{"inherited", []string{"triage_inherited ignored no_time"}, "unresolved ignored", "1 unresolved ignored"},
		{"fixed and back", []string{"created open", "fixed fixed", "reopened open"}, "unresolved untriaged",
			"1 unresolved untriaged, 2 fixed untriaged, 3 unresolved untriaged"},
		{"ignored, fixed and back", []string{"created open", "triaged ignored no_time", "fixed fixed", "reopened ignored"}, "unresolved ignored",
			"1 unresolved untriaged, 2 unresolved ignored, 3 fixed ignored, 4 unresolved ignored"},
		{"ignored while fixed", []string{"created open", "fixed fixed", "triage_spread fixed no_time", "reopened ignored"}, "unresolved ignored",
			"1 unresolved untriaged, 2 fixed untriaged, 3 fixed ignored, 4 unresolved ignored"},
		{"reopened by a person", []string{"created ignored", "triaged open"}, "muted reopened", "1 muted untriaged, 2 muted reopened"},
		{"muted and unmuted", []string{"created open", "muted ignored", "updated ignored", "unmuted open"}, "unresolved untriaged",
			"1 unresolved untriaged, 2 muted untriaged, 4 unresolved untriaged"},
		{"ignored by a path", []string{"created open", "path_ignored ignored", "path_returned open"}, "unresolved untriaged",
			"1 unresolved untriaged, 2 muted untriaged, 3 unresolved untriaged"},
		{"noted", []string{"created open", "noted open"}, "unresolved untriaged", "1 unresolved untriaged"},
		{"no events", nil, "unresolved ignored", "9 unresolved ignored"},
		{"a decision from before the events", []string{"created open", "fixed fixed"}, "fixed ignored", "1 unresolved ignored, 2 fixed ignored"},
	} {
		var events []*ent.FindingEvent
		for i, text := range test.events {
			parts := append(strings.Fields(text), "")
			events = append(events, &ent.FindingEvent{Kind: parts[0], ToStatus: parts[1], Reason: parts[2], At: int64(i + 1)})
		}
		row := &ent.Finding{CreatedAt: 9}
		row.State, row.TriageState, _ = strings.Cut(test.now, " ")
		var got []string
		for _, s := range appendSteps(nil, row, events) {
			got = append(got, fmt.Sprint(s.at, " ", s.state, " ", s.triage))
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.what, text, test.want)
		}
	}
}
