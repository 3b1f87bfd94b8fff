// Package triage stores decisions about findings. They come from callers of the API, or from people who answer a review
// comment at their source-code host.
package triage

import (
	"context"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// Decision is a decision about findings, with its actor and time.
type Decision struct {
	DeploymentID int64
	// Kind is one of the kinds of changes.
	Kind string
	// State is a triage state of package lifecycle. If it is empty, only the note changes.
	State string
	// Reason belongs to the state ignored; see New.
	Reason string
	// Note replaces the note of the findings. If it is empty, their note is kept.
	Note string
	// ActorKind and ActorID have the form of finding events. ActorName is the login of a person at a host.
	ActorKind string
	ActorID   int64
	ActorName string
	// At is in microseconds since 1970.
	At int64
	// DecidedAt is the time of the decision in microseconds since 1970, if it is stored later; 0 means At.
	DecidedAt int64
	// Queue gets the automations that the decision triggers; nil: it triggers none.
	Queue *jobs.Jobs

	undoes *int64 // the change that an undo undoes
}

// New returns a decision of now. An ignored finding always has a reason. A note of blanks is none.
func New(deploymentID int64, kind, state, reason, note string) Decision {
	if state == lifecycle.Ignored && reason == "" {
		reason = lifecycle.NoTriageReason
	}
	if strings.TrimSpace(note) == "" {
		note = ""
	}
	return Decision{DeploymentID: deploymentID, Kind: kind, State: state, Reason: reason, Note: note, At: store.Now()}
}

// Apply stores the decision about chosen findings. If all refs share this kind of decision, it also applies to the
// findings of the same identities on other refs. Apply records an event for each finding that changes. The caller has
// to hold the locks of the findings' projects; see LockProjects. Apply returns the change and the ids of the affected
// findings that a list may show, including findings that had this decision before.
func (d Decision) Apply(ctx context.Context, st *store.Store, tx *ent.Tx, chosen []int64) (change *Change, shown []int64, err error) {
	if change, err = d.Begin(ctx, st, tx); err != nil {
		return nil, nil, err
	}
	if err := change.Choose(ctx, store.WithIDs[predicate.Finding](chosen)); err != nil {
		return nil, nil, err
	}
	if err := change.Spread(ctx); err != nil {
		return nil, nil, err
	}
	if shown, err = change.Shown(ctx); err != nil {
		return nil, nil, err
	}
	return change, shown, change.Finish(ctx)
}

func (d Decision) decidedAt() int64 {
	if d.DecidedAt != 0 {
		return d.DecidedAt
	}
	return d.At
}

// newStatus is the status of a finding of the table after the decision.
func (d Decision) newStatus(table string) []any {
	if d.State == "" {
		return []any{table + ".status"}
	}
	return []any{
		"CASE WHEN " + table + ".state IN ('" + lifecycle.Fixed + "', '" + lifecycle.Removed + "') THEN " + table + ".state ELSE ",
		arg{lifecycle.Status(lifecycle.Unresolved, d.State)}, " END",
	}
}

// changes is the condition under which the decision changes a finding. Repeating a decision records no event.
func (d Decision) changes(table string) []any {
	parts := []any{"("}
	if d.State != "" {
		parts = append(parts, table+".triage_state <> ", arg{d.State}, " OR COALESCE("+table+".triage_reason, '') <> ", arg{d.Reason})
	}
	if d.Note != "" {
		if d.State != "" {
			parts = append(parts, " OR ")
		}
		parts = append(parts, "COALESCE("+table+".triage_comment, '') <> ", arg{d.Note})
	}
	return append(parts, ")")
}

// events begins an INSERT of events of decisions.
const events = "INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, actor_name, at) "

// record writes the events of the findings that change. Findings that were not chosen themselves have their own kind of
// event.
func (c *Change) record(ctx context.Context) (err error) {
	kind := "triaged"
	if c.State == "" {
		kind = "noted"
	}
	c.Changed, err = c.exec(ctx, join(events, "SELECT f.deployment_id, f.id, CASE WHEN kept.chosen THEN '"+kind+"' ELSE 'triage_spread' END, f.status, ",
		c.newStatus("f"), ", ", arg{c.Reason}, ", ", arg{c.Note}, ", ", c.actor(), " FROM ", c.rows(), " AND ", c.changes("f"))...)
	return err
}

// actor is the end of an event's row.
func (d Decision) actor() []any {
	return []any{arg{d.ActorKind}, ", ", arg{d.ActorID}, ", ", arg{d.ActorName}, ", ", arg{d.At}}
}

// update stores the decision in the findings that it changes. A repeated decision sets only the time of a finding that
// has none.
func (c *Change) update(ctx context.Context) error {
	parts := []any{"UPDATE findings SET "}
	written := c.changes("findings")
	if c.Note != "" {
		parts = append(parts, "triage_comment = ", arg{c.Note})
	}
	if c.State != "" {
		if c.Note != "" {
			parts = append(parts, ", ")
		}
		var reason any
		if c.Reason != "" {
			reason = c.Reason
		}
		parts = append(parts, "triage_state = ", arg{c.State}, ", triage_reason = ", arg{reason}, ", triaged_at = ", arg{c.decidedAt()}, ", status = ")
		parts = append(parts, c.newStatus("findings")...)
		written = join("(", written, " OR findings.triaged_at IS NULL)")
	}
	_, err := c.exec(ctx, join(parts, " WHERE +deployment_id = ", arg{c.DeploymentID}, " AND id IN (", c.ids(), ") AND ", written)...)
	return err
}
