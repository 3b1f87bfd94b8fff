// Package lifecycle has the states of findings, and the rule that combines them.
//
// A finding has two independent states: the state, which scans set, and the triage state, which people and automation
// set. Status is derived from both (contract facts 3.11).
package lifecycle

// States: the outcome of the latest scans.
const (
	// Unresolved: the latest scan that covered it reported it.
	Unresolved = "unresolved"
	// Muted: reported, but suppressed in the code itself.
	Muted = "muted"
	// Fixed: a scan covered it and did not report it.
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

// Open is the status of a finding that needs attention. The other statuses have the names of states or triage states.
const Open = "open"

// NoTriageReason is the reason of a decision to ignore without a reason.
const NoTriageReason = "no_triage_reason"

// Status combines both states. Fixed and removed take precedence over any decision. A decision, including reopening,
// takes precedence over a suppression in the code.
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

// Seen reports whether the finding is in the code now, according to its state.
func Seen(state string) bool { return state == Unresolved || state == Muted }

// Spreads reports whether a decision applies to the same finding on other refs. A provisional decision, which
// automation makes, does not (contract facts section 4).
func Spreads(triageState string) bool { return triageState != ProvisionallyIgnored }
