// Package triage stores decisions about findings. They come from callers of the API, or from people who answer a review
// comment at their source-code host.
package triage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/teamproject"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// Decision is a decision about findings, with its actor and time.
type Decision struct {
	DeploymentID int64
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
}

// New returns a decision of now. An ignored finding always has a reason.
func New(deploymentID int64, state, reason, note string) Decision {
	if state == lifecycle.Ignored && reason == "" {
		reason = lifecycle.NoTriageReason
	}
	return Decision{DeploymentID: deploymentID, State: state, Reason: reason, Note: note, At: store.Now()}
}

// Apply stores the decision about chosen findings of one issue type. If all refs share this kind of decision, it also
// applies to the findings of the same identities on other refs. Apply records an event for each finding that changes.
// The caller has to hold the locks of the findings' projects (see store.Write; on PostgreSQL by locking their rows).
// Apply returns the ids of the affected findings that a list may show.
func (d Decision) Apply(ctx context.Context, st *store.Store, tx *ent.Tx, issueType string, chosen []int64) (triaged []int64, err error) {
	all, triaged := chosen, chosen
	if err := st.PlanByIndexes(ctx, tx); err != nil {
		return nil, err
	}
	if lifecycle.Spreads(d.State) {
		if all, triaged, err = siblings(ctx, tx, d.DeploymentID, issueType, chosen); err != nil {
			return nil, err
		}
	}
	if err := d.record(ctx, st, tx, chosen, all); err != nil {
		return nil, fmt.Errorf("record triage events: %w", err)
	}
	return triaged, d.update(ctx, tx, all)
}

func (d Decision) decidedAt() int64 {
	if d.DecidedAt != 0 {
		return d.DecidedAt
	}
	return d.At
}

func (d Decision) update(ctx context.Context, tx *ent.Tx, all []int64) error {
	update := tx.Finding.Update().Where(store.WithIDs[predicate.Finding](all))
	if d.Note != "" {
		update.SetTriageComment(d.Note)
	}
	if d.State != "" {
		update.SetTriageState(d.State).SetTriagedAt(d.decidedAt())
		if d.Reason == "" {
			update.ClearTriageReason()
		} else {
			update.SetTriageReason(d.Reason)
		}
		update.Modify(func(u *entsql.UpdateBuilder) {
			u.Set(finding.FieldStatus, entsql.ExprFunc(func(b *entsql.Builder) { d.writeStatus(b) }))
		})
	}
	return update.Exec(tenant.ByKey(ctx))
}

// writeStatus writes lifecycle.Status for the new triage state in SQL. A test compares the two.
func (d Decision) writeStatus(b *entsql.Builder) {
	b.WriteString("CASE WHEN ").Ident(finding.FieldState).WriteString(" IN ('" + lifecycle.Fixed + "', '" + lifecycle.Removed + "') THEN ").
		Ident(finding.FieldState).WriteString(" ELSE ").Arg(lifecycle.Status(lifecycle.Unresolved, d.State)).WriteString(" END")
}

// changes is the condition under which the decision changes a finding. Repeating a decision records no event.
func (d Decision) changes() (condition string, args []any) {
	var parts []string
	if d.State != "" {
		parts = append(parts, "triage_state <> ?", "COALESCE(triage_reason, '') <> ?")
		args = append(args, d.State, d.Reason)
	}
	if d.Note != "" {
		parts = append(parts, "COALESCE(triage_comment, '') <> ?")
		args = append(args, d.Note)
	}
	return "(" + strings.Join(parts, " OR ") + ")", args
}

// record writes the events with one INSERT … SELECT. Findings that were not chosen themselves have their own kind of
// event. Policies do not apply to this statement, so it repeats which projects the caller may decide about. The plus is
// explained at tenant.ByKey.
func (d Decision) record(ctx context.Context, st *store.Store, tx *ent.Tx, chosen, all []int64) error {
	changed, changedArgs := d.changes()
	kind, to := "noted", "status"
	var toArgs []any
	if d.State != "" {
		kind = "triaged"
		to = "CASE WHEN state IN ('" + lifecycle.Fixed + "', '" + lifecycle.Removed + "') THEN state ELSE ? END"
		toArgs = []any{lifecycle.Status(lifecycle.Unresolved, d.State)}
	}
	inChosen, chosenIDs := st.InIDs(chosen)
	inAll, allIDs := st.InIDs(all)
	columns := []string{findingevent.FieldDeploymentID, findingevent.FieldFindingID, findingevent.FieldKind, findingevent.FieldFromStatus,
		findingevent.FieldToStatus, findingevent.FieldReason, findingevent.FieldNote, findingevent.FieldActorKind, findingevent.FieldActorID,
		findingevent.FieldActorName, findingevent.FieldAt}
	query := "INSERT INTO " + findingevent.Table + " (" + strings.Join(columns, ", ") + ") " +
		"SELECT deployment_id, id, CASE WHEN id" + inChosen + " THEN ? ELSE 'triage_spread' END, status, " + to + ", ?, ?, ?, ?, ?, ? FROM " + finding.Table +
		" WHERE +deployment_id = ? AND id" + inAll + " AND " + changed
	args := slices.Concat(chosenIDs, []any{kind}, toArgs, []any{d.Reason, d.Note, d.ActorKind, d.ActorID, d.ActorName, d.At, d.DeploymentID}, allIDs, changedArgs)
	if teams, limited := tenant.Teams(ctx); limited {
		inTeams, teamIDs := st.InIDs(teams)
		query += " AND project_id IN (SELECT project_id FROM " + teamproject.Table + " WHERE deployment_id = ? AND team_id" + inTeams + ")"
		args = append(append(args, d.DeploymentID), teamIDs...)
	}
	return st.Exec(ctx, tx, query, args...)
}
