// Package lifecycle holds the words for where a finding stands and the rule that combines them.
//
// A finding has two independent facts: its state, which scans set, and its triage state, which people and automation
// set. Status is derived from both (contract facts 3.11).
package lifecycle

// States: what scans saw last.
const (
	// Unresolved: the latest scan that looked saw it.
	Unresolved = "unresolved"
	// Muted: seen, but suppressed in the code itself.
	Muted = "muted"
	// Fixed: a scan looked and it was gone.
	Fixed = "fixed"
	// Removed: its rule or file is gone; never listed.
	Removed = "removed"
)

// Triage states: what people or automation decided.
const (
	Untriaged            = "untriaged"
	Ignored              = "ignored"
	Reopened             = "reopened"
	Reviewing            = "reviewing"
	Fixing               = "fixing"
	ProvisionallyIgnored = "provisionally_ignored"
)

// Open is the status of a finding that asks for attention; the other statuses are named as states or triage states.
const Open = "open"

// NoTriageReason is the reason of a decision to ignore that names none.
const NoTriageReason = "no_triage_reason"

// Status combines both facts: gone beats any decision, a decision beats a suppression in the code, and a person who
// reopened a finding beats that suppression too.
func Status(state, triageState string) string {
	switch state {
	case Fixed, Removed:
		return state
	}
	switch triageState {
	case Ignored, Reviewing, Fixing, ProvisionallyIgnored:
		return triageState
	case Reopened:
		return Open
	}
	if state == Muted {
		return Ignored
	}
	return Open
}

// Seen reports whether the state says that the finding is in the code now.
func Seen(state string) bool { return state == Unresolved || state == Muted }

// Spreads reports whether a decision is shared with the same finding on other refs. A provisional one, which
// automation takes, is not (contract facts section 4).
func Spreads(triageState string) bool { return triageState != ProvisionallyIgnored }
