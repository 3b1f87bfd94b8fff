package triage

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/triagechange"
)

// Undoing is a change that is about to be undone.
type Undoing struct {
	*ent.TriageChange
	// Decision is the change itself or, if it is an undo, the decision that it undid in the end.
	Decision *ent.TriageChange
	// Redoes reports that the undo makes the decision again.
	Redoes bool

	remade []int64 // the changes that the undo makes again
}

// FindDecision finds the decision of a change. It returns ent's error if the decision is older than changes are kept.
func FindDecision(ctx context.Context, tx *ent.Tx, of *ent.TriageChange) (*Undoing, error) {
	out := &Undoing{TriageChange: of, Decision: of}
	for out.Decision.UndoesID != nil {
		former, err := tx.TriageChange.Query().Where(triagechange.ID(*out.Decision.UndoesID)).Only(ctx)
		if err != nil {
			return nil, err
		}
		if out.Decision, out.Redoes = former, !out.Redoes; out.Redoes {
			out.remade = append(out.remade, former.ID)
		}
	}
	return out, nil
}

// undos begins a query with a table of the undos since the change: the change or the later decision that they are about
// (root), and whether they make it again. An undo may concern a part of the findings only.
func (u *undo) undos() []any {
	return []any{
		"WITH RECURSIVE undos(root, id, redo) AS (SELECT made.undoes_id, made.id, false FROM triage_changes made JOIN triage_changes decided" +
			" ON decided.id = made.undoes_id AND decided.deployment_id = made.deployment_id WHERE made.deployment_id = ", arg{u.DeploymentID}, " AND made.id > ", arg{u.of.ID},
		" AND (decided.id = ", arg{u.of.ID}, " OR decided.undoes_id IS NULL) UNION ALL SELECT undos.root, made.id, NOT undos.redo FROM undos" +
			" JOIN triage_changes made ON made.undoes_id = undos.id WHERE made.deployment_id = ", arg{u.DeploymentID}, " AND made.id > ", arg{u.of.ID}, ") ",
	}
}

// inEffect is the condition that a change of the table undos is in effect for a finding: the last undo that concerns
// the finding made it again, or there is none.
func (u *undo) inEffect(change, finding string) []any {
	return []any{
		"COALESCE((SELECT undos.redo FROM triage_change_findings part JOIN undos ON undos.id = part.change_id WHERE part.deployment_id = ",
		arg{u.DeploymentID}, " AND part.finding_id = " + finding + " AND part.change_id > " + change + " AND undos.root = " + change +
			" ORDER BY undos.id DESC LIMIT 1), true)",
	}
}
