package triage

import "context"

// Decider decides about findings for other domains. The domain of findings sets Decide.
type Decider struct {
	// Decide decides about one finding for the caller in the context, with the rules of a bulk update: the caller's
	// projects, and exceptions where developers request them.
	Decide func(ctx context.Context, findingID int64, state, reason, note string) (Outcome, error)
}

// DeciderKey is the key of the Decider that domains share.
type DeciderKey struct{}

// Outcome is what became of a decision.
type Outcome struct {
	// Found is false if the caller sees no such finding.
	Found bool
	// Changed is true if the finding changed; false if it had this decision before.
	Changed bool
	// Requested is true if an exception was requested instead.
	Requested bool
}
