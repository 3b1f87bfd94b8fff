package triage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/triagechange"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/scans/feedback"
)

// Kinds of changes, in the words of the table.
const (
	KindTriage     = "triage"
	KindBulkUpdate = "bulk_update"
	KindComment    = "comment"
	KindException  = "exception"
	KindUndo       = "undo"
	KindAutomation = "automation"
)

// Change is a decision while it is stored. Its findings are rows of the table from the beginning: statements select
// them by the id of the change, so that neither memory nor parameters grow with their number.
type Change struct {
	Decision
	ID int64
	// Chosen is the number of findings that the caller selected. Changed is the number of findings that changed, on all
	// refs.
	Chosen, Changed int64

	spread int64 // findings on other refs
	store  *store.Store
	tx     *ent.Tx
}

// Begin starts to store a decision. The caller has to hold the locks of the findings' projects; see LockProjects.
// Finish or Drop ends it.
func (d Decision) Begin(ctx context.Context, st *store.Store, tx *ent.Tx) (*Change, error) {
	if err := st.PlanByIndexes(ctx, tx); err != nil {
		return nil, err
	}
	row, err := tx.TriageChange.Create().SetDeploymentID(d.DeploymentID).SetKind(d.Kind).SetState(d.State).SetReason(d.Reason).
		SetNote(d.Note).SetNillableUndoesID(d.undoes).SetActorKind(d.ActorKind).SetActorID(d.ActorID).SetActorName(d.ActorName).
		SetDecidedAt(d.decidedAt()).SetAt(d.At).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("create triage change: %w", err)
	}
	return &Change{Decision: d, ID: row.ID, store: st, tx: tx}, nil
}

// keep begins an INSERT of findings of a change, as they are now.
const keep = "INSERT INTO triage_change_findings (deployment_id, change_id, finding_id, chosen, triage_state, triage_reason, triage_comment, triaged_at) "

// keptColumns are what a change keeps of a finding of the table t.
func keptColumns(t string) string {
	return t + ".triage_state, " + t + ".triage_reason, " + t + ".triage_comment, " + t + ".triaged_at "
}

// rows are the findings of the change in a FROM clause, as kept, and f, as they are now; the condition follows.
func (c *Change) rows() []any {
	return []any{
		"triage_change_findings kept CROSS JOIN findings f WHERE kept.deployment_id = ", arg{c.DeploymentID}, " AND kept.change_id = ", arg{c.ID},
		" AND f.id = kept.finding_id",
	}
}

// ids selects the ids of the findings of the change.
func (c *Change) ids() []any {
	return []any{"SELECT finding_id FROM triage_change_findings WHERE deployment_id = ", arg{c.DeploymentID}, " AND change_id = ", arg{c.ID}}
}

func (c *Change) exec(ctx context.Context, parts ...any) (int64, error) {
	return exec(ctx, c.store, c.tx, join(parts...)...)
}

// join flattens the parts of a statement.
func join(parts ...any) []any {
	var flat []any
	for _, part := range parts {
		if list, ok := part.([]any); ok {
			flat = append(flat, list...)
		} else {
			flat = append(flat, part)
		}
	}
	return flat
}

// Choose adds the findings that the conditions and the caller's teams select.
func (c *Change) Choose(ctx context.Context, where ...predicate.Finding) error {
	found, err := selected(ctx, c.store, where, "findings.deployment_id, ", arg{c.ID}, ", findings.id, true, ", keptColumns("findings"))
	if err != nil {
		return err
	}
	n, err := c.exec(ctx, keep, found)
	c.Chosen += n
	if err != nil {
		return fmt.Errorf("choose findings: %w", err)
	}
	return nil
}

// Finish decides about the findings of the change. It records an event for each finding that changes, and answers open
// exception requests. The change keeps only the findings that it changed. Without any, it is deleted, and its ID is 0.
func (c *Change) Finish(ctx context.Context) error {
	if c.Kind != KindException {
		if err := c.answerRequests(ctx, c.State, c.ID); err != nil {
			return fmt.Errorf("answer exception requests: %w", err)
		}
	}
	if err := c.record(ctx); err != nil {
		return fmt.Errorf("record triage events: %w", err)
	}
	if err := c.update(ctx); err != nil {
		return fmt.Errorf("triage findings: %w", err)
	}
	if err := c.dropUnchanged(ctx); err != nil || c.ID == 0 {
		return err
	}
	if err := c.tx.TriageChange.UpdateOneID(c.ID).SetChosen(c.Chosen).SetChanged(c.Changed).Exec(ctx); err != nil {
		return err
	}
	return c.automate(ctx)
}

// automate enqueues what the decision triggers: automations, and feedback on pull requests.
func (c *Change) automate(ctx context.Context) error {
	if c.Queue == nil {
		return nil
	}
	if err := feedback.Triaged(ctx, c.tx, c.Queue, c.DeploymentID, c.ID); err != nil {
		return fmt.Errorf("ask for feedback on pull requests: %w", err)
	}
	return outbox.Triaged(ctx, c.tx, c.Queue, c.DeploymentID, c.ID)
}

// dropUnchanged removes the findings that are as they were. For them, an undo has nothing to restore, and the change
// must not block the undo of the decision that they had already.
func (c *Change) dropUnchanged(ctx context.Context) error {
	kept := c.Chosen + c.spread
	if c.Changed == kept {
		return nil
	}
	n, err := c.exec(ctx, "DELETE FROM triage_change_findings WHERE deployment_id = ", arg{c.DeploymentID}, " AND change_id = ", arg{c.ID},
		" AND finding_id IN (SELECT f.id FROM ", c.rows(), " AND "+same("kept", "f")+")")
	if err != nil {
		return fmt.Errorf("drop unchanged findings: %w", err)
	}
	if n < kept {
		return nil
	}
	return c.drop(ctx)
}

// Spread adds the findings of the chosen identities on other refs, if all refs share this kind of decision.
func (c *Change) Spread(ctx context.Context) (err error) {
	if !lifecycle.Spreads(c.State) {
		return nil
	}
	identities := join("SELECT DISTINCT f.project_id, f.fingerprint, f.issue_type FROM ", c.rows())
	c.spread, err = c.exec(ctx, join(keep, "SELECT twin.deployment_id, ", arg{c.ID}, ", twin.id, false, ", keptColumns("twin"), "FROM ",
		sameIdentity(c.store, c.DeploymentID, identities...), " ON CONFLICT (deployment_id, change_id, finding_id) DO NOTHING")...)
	if err != nil {
		return fmt.Errorf("find other refs: %w", err)
	}
	return nil
}

// Shown returns the ids of the findings of the change that a list may show, in order.
func (c *Change) Shown(ctx context.Context) (ids []int64, err error) {
	err = each(ctx, c.store, c.tx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, join("SELECT f.id FROM ", c.rows(), " AND f.status <> '"+lifecycle.Removed+"'")...)
	return ids, err
}

// Drop ends a change without findings.
func (c *Change) Drop(ctx context.Context) error {
	if c.Chosen > 0 {
		return errors.New("a change with findings cannot be dropped")
	}
	return c.drop(ctx)
}

// drop deletes the change.
func (c *Change) drop(ctx context.Context) error {
	_, err := c.tx.TriageChange.Delete().Where(triagechange.ID(c.ID)).Exec(ctx)
	c.ID = 0
	return err
}

// Row is the change as stored.
func (c *Change) Row() *ent.TriageChange {
	return &ent.TriageChange{
		ID: c.ID, DeploymentID: c.DeploymentID, Kind: c.Kind, State: c.State, Reason: c.Reason, Note: c.Note, UndoesID: c.undoes,
		ActorKind: c.ActorKind, ActorID: c.ActorID, ActorName: c.ActorName, Chosen: c.Chosen, Changed: c.Changed, DecidedAt: c.decidedAt(), At: c.At,
	}
}
