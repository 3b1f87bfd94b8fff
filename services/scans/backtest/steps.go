package backtest

import (
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/policies/pathignore"
)

// step is the state of a finding since a time.
type step struct {
	at            int64
	state, triage word
}

// word is a state or a triage state.
type word uint8

// The words, by number.
const (
	unresolved word = iota
	muted
	fixed
	removed
	untriaged
	ignored
	reopened
	reviewing
	fixing
	provisional
)

var words = [...]string{
	lifecycle.Unresolved, lifecycle.Muted, lifecycle.Fixed, lifecycle.Removed,
	lifecycle.Untriaged, lifecycle.Ignored, lifecycle.Reopened, lifecycle.Reviewing, lifecycle.Fixing, lifecycle.ProvisionallyIgnored,
}

func (w word) String() string { return words[w] }

// wordOf is the number of a word, or otherwise.
func wordOf(text string, otherwise word) word {
	if at := slices.Index(words[:], text); at >= 0 {
		return word(at) //nolint:gosec // one of the words
	}
	return otherwise
}

// seen reports whether the finding is in the code.
func (s step) seen() bool { return s.state == unresolved || s.state == muted }

// reports are the kinds of events of a finding that the scan reported.
var reports = map[string]bool{
	"created": true, "updated": true, "reopened": true, "muted": true, "unmuted": true, "matched": true, "triage_inherited": true,
	pathignore.EventIgnored: true, pathignore.EventReturned: true,
}

// decides are the kinds of events that change the triage state.
var decides = map[string]bool{
	"triaged": true, "triage_spread": true, "triage_undone": true, "exception_approved": true, "exception_rejected": true,
}

// appendSteps replays the events of a finding. What the events do not explain, for example a decision of before they
// were stored, holds from the beginning.
func appendSteps(steps []step, row *ent.Finding, events []*ent.FindingEvent) []step {
	begin := len(steps)
	for _, e := range events {
		now := step{at: e.At, state: unresolved, triage: untriaged}
		if len(steps) > begin {
			last := steps[len(steps)-1]
			now.state, now.triage = last.state, last.triage
		}
		now.apply(e)
		if len(steps) == begin || steps[len(steps)-1].state != now.state || steps[len(steps)-1].triage != now.triage {
			steps = append(steps, now)
		}
	}
	current := step{at: row.CreatedAt, state: wordOf(row.State, unresolved), triage: wordOf(row.TriageState, untriaged)}
	if len(steps) == begin {
		return append(steps, current)
	}
	if !slices.ContainsFunc(events, func(e *ent.FindingEvent) bool { return decides[e.Kind] || e.Kind == "triage_inherited" }) {
		for i := range steps[begin:] {
			steps[begin+i].triage = current.triage
		}
	}
	return steps
}

// apply changes the state as the event did.
func (s *step) apply(e *ent.FindingEvent) {
	to := wordOf(e.ToStatus, untriaged) // open is no word
	switch {
	case decides[e.Kind] && (to == fixed || to == removed):
		// The event does not name a decision about a closed finding. Only those to ignore have a reason.
		if s.triage = untriaged; e.Reason != "" {
			s.triage = ignored
		}
	case to == fixed || to == removed:
		s.state = to
	case decides[e.Kind]:
		s.decide(to)
	case e.Kind == "triage_inherited":
		s.state, s.triage = unresolved, to
	case e.Kind == "muted" || e.Kind == pathignore.EventIgnored:
		s.state = muted
	case e.Kind == "unmuted" || e.Kind == pathignore.EventReturned:
		s.state = unresolved
	case e.Kind == "created" || e.Kind == "reopened":
		s.state = unresolved
		if to == ignored && s.triage != ignored {
			s.state = muted
		}
	case !s.seen(): // an undone identity change
		s.state = unresolved
	}
}

// decide sets the triage state of an event of a decision.
func (s *step) decide(to word) {
	switch {
	case to != untriaged:
		s.triage = to
	case s.state == muted:
		s.triage = reopened
	default:
		s.triage = untriaged
	}
}

// at returns the step of a time; ok is false before the first.
func at(steps []step, time int64) (s step, ok bool) {
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].at <= time {
			return steps[i], true
		}
	}
	return step{}, false
}

// since returns, as of a time, the state, when the finding was last created or came back, and when the state began.
func since(steps []step, time int64) (state word, relevant, changed int64, ok bool) {
	there := false
	for _, s := range steps {
		if s.at > time {
			break
		}
		if s.seen() && !there {
			relevant = s.at
		}
		if !ok || s.state != state {
			changed = s.at
		}
		state, there, ok = s.state, s.seen(), true
	}
	return state, relevant, changed, ok
}
