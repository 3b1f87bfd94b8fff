package triage

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// Reasons why an undo keeps a finding as it is.
const (
	KeptChangedSince = iota
	KeptNotVisible
	KeptGone
	keptReasons
)

// maxKeptIDs limits the ids of findings that an undo kept, per reason.
const maxKeptIDs = 100

// Kept are findings that an undo did not restore for one reason.
type Kept struct {
	Count int64
	// IDs are the first ones; empty for findings that the caller may not see or that are gone.
	IDs []int64
}

// Undone is the result of an undo.
type Undone struct {
	// Change is the undo; nil if no finding was restored.
	Change   *Change
	Restored int64
	Kept     [keptReasons]Kept // by reason
}

// undo restores the findings of a change.
type undo struct {
	*Change
	of *Undoing
}

// Undo restores the findings of a change that are as the change left them, and records an event for each. The caller
// has to hold the lock of the change and the locks of the findings' projects. by has the actor and the time.
func Undo(ctx context.Context, st *store.Store, tx *ent.Tx, of *Undoing, by Decision) (*Undone, error) {
	by.Kind, by.undoes = KindUndo, &of.ID
	change, err := by.Begin(ctx, st, tx)
	if err != nil {
		return nil, err
	}
	u := &undo{Change: change, of: of}
	for _, step := range []func(context.Context) error{u.addInherited, u.choose} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("undo change %d: %w", of.ID, err)
		}
	}
	out := &Undone{Change: change, Restored: u.Chosen}
	if err := u.explain(ctx, out); err != nil {
		return nil, fmt.Errorf("findings that were not restored: %w", err)
	}
	if u.Chosen == 0 {
		out.Change = nil
		return out, change.Drop(ctx)
	}
	complete := out.Kept[KeptChangedSince].Count+out.Kept[KeptNotVisible].Count == 0
	for _, step := range []func(context.Context) error{u.record, u.restore, u.revertRequests} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("undo change %d: %w", of.ID, err)
		}
	}
	if err := u.mark(ctx, complete); err != nil {
		return nil, err
	}
	return out, u.automate(ctx)
}

// addInherited adds findings to the change that scans created since and that inherited its decision from another ref.
// So do findings that a finding of the change was merged into, which may have been merged in turn. They get the former
// state of that finding. Otherwise the undo would leave the decision in effect there.
func (u *undo) addInherited(ctx context.Context) error {
	if u.of.Kind == KindUndo || u.of.State == "" || !lifecycle.Spreads(u.of.State) {
		return nil
	}
	for {
		if added, err := u.addInheritors(ctx); err != nil || added == 0 {
			return err
		}
	}
}

// addInheritors adds the findings that inherited the decision from a finding of the change. They keep their own note if
// the decision had none.
func (u *undo) addInheritors(ctx context.Context) (int64, error) {
	former := join("SELECT * FROM (SELECT f.project_id, f.fingerprint, f.issue_type, kept.id, ", keptColumns("kept"), "FROM ", u.rowsOf(),
		" UNION ALL SELECT target.project_id, target.fingerprint, target.issue_type, kept.id, ", keptColumns("kept"),
		"FROM (SELECT kept.*, f.merged_into FROM ", u.rowsOf(), " AND f.merged_into IS NOT NULL) AS kept CROSS JOIN findings AS target",
		" WHERE target.id = kept.merged_into) AS heirs ORDER BY id")
	inherited := keptColumns("chosen")
	if u.of.Note == "" {
		inherited = strings.Replace(inherited, "chosen.triage_comment", "twin.triage_comment", 1)
	}
	return u.exec(ctx, join(keep, "SELECT twin.deployment_id, ", arg{u.of.ID}, ", twin.id, false, ", inherited, "FROM ",
		sameIdentity(u.store, u.DeploymentID, former...), " AND twin.triage_state = ", arg{u.of.State}, " AND twin.triaged_at = ", arg{u.of.DecidedAt},
		" AND COALESCE(twin.triage_reason, '') = ", arg{u.of.Reason}, " ON CONFLICT (deployment_id, change_id, finding_id) DO NOTHING")...)
}

// rowsOf are the findings of the undone change, like rows.
func (u *undo) rowsOf() []any { return (&Change{Decision: u.Decision, ID: u.of.ID}).rows() }

// same is the condition that two tables have the same decision about a finding.
func same(a, b string) string {
	return a + ".triage_state = " + b + ".triage_state AND COALESCE(" + a + ".triage_reason, '') = COALESCE(" + b + ".triage_reason, '')" +
		" AND COALESCE(" + a + ".triage_comment, '') = COALESCE(" + b + ".triage_comment, '')" +
		" AND COALESCE(" + a + ".triaged_at, 0) = COALESCE(" + b + ".triaged_at, 0)"
}

// choose adds the findings that are as the change left them, and for which no later decision is in effect. A later
// decision may have set the same values.
func (u *undo) choose(ctx context.Context) (err error) {
	u.Chosen, err = u.exec(ctx, join(keep, u.undos(), "SELECT f.deployment_id, ", arg{u.ID}, ", f.id, kept.chosen, ", keptColumns("f"), "FROM ", u.rowsOf(),
		u.asLeft(), " AND ", u.inEffect("kept.change_id", "kept.finding_id"), " AND NOT EXISTS (SELECT 1 FROM triage_change_findings later"+
			" JOIN triage_changes decided ON decided.id = later.change_id WHERE later.deployment_id = ", arg{u.DeploymentID},
		" AND later.finding_id = kept.finding_id AND later.change_id > ", arg{u.of.ID}, " AND decided.kind <> '"+KindUndo+"' AND ",
		u.inEffect("later.change_id", "later.finding_id"), ")", u.visible(ctx))...)
	return err
}

// asLeft is the condition that a finding is as the change left it. An undo left it as the change that it undid had
// found it.
func (u *undo) asLeft() []any {
	if u.of.UndoesID != nil {
		return []any{
			" AND EXISTS (SELECT 1 FROM triage_change_findings former WHERE former.deployment_id = ", arg{u.DeploymentID}, " AND former.change_id = ",
			arg{*u.of.UndoesID}, " AND former.finding_id = kept.finding_id AND " + same("former", "f") + ")",
		}
	}
	left := []any{
		" AND f.triage_state = kept.triage_state AND COALESCE(f.triage_reason, '') = COALESCE(kept.triage_reason, '')" +
			" AND COALESCE(f.triaged_at, 0) = COALESCE(kept.triaged_at, 0)",
	}
	if u.of.State != "" {
		left = []any{
			" AND f.triage_state = ", arg{u.of.State}, " AND COALESCE(f.triage_reason, '') = ", arg{u.of.Reason},
			" AND COALESCE(f.triaged_at, 0) = ", arg{u.of.DecidedAt},
		}
	}
	if u.of.Note != "" {
		return append(left, " AND COALESCE(f.triage_comment, '') = ", arg{u.of.Note})
	}
	return append(left, " AND COALESCE(f.triage_comment, '') = COALESCE(kept.triage_comment, '')")
}

// visible is the condition that the caller may see a finding.
func (u *undo) visible(ctx context.Context) []any {
	f := entsql.Dialect(u.store.Dialect()).Table(finding.Table).As("f")
	condition := tenant.InVisibleProjects(ctx, entsql.Dialect(u.store.Dialect()).Select().From(f), f.C(finding.FieldProjectID))
	if condition == nil {
		return nil
	}
	return []any{" AND ", condition}
}

// explain counts the findings that neither this undo nor an earlier one restored. It reads them in order, and keeps
// few.
func (u *undo) explain(ctx context.Context, out *Undone) error {
	shown := []any{"true"}
	if visible := u.visible(ctx); visible != nil {
		shown = visible[1:]
	}
	return each(ctx, u.store, u.tx, func(rows *sql.Rows) error {
		var id int64
		var visible, gone bool
		if err := rows.Scan(&id, &visible, &gone); err != nil {
			return err
		}
		reason := KeptChangedSince
		switch {
		case gone:
			reason = KeptGone
		case !visible:
			reason = KeptNotVisible
		}
		kept := &out.Kept[reason]
		kept.Count++
		if reason == KeptChangedSince && len(kept.IDs) < maxKeptIDs {
			kept.IDs = append(kept.IDs, id)
		}
		return nil
	}, join(u.undos(), "SELECT kept.finding_id, COALESCE(", shown, ", false), f.id IS NULL FROM triage_change_findings kept LEFT JOIN findings f ON f.id = kept.finding_id"+
		" WHERE kept.deployment_id = ", arg{u.DeploymentID}, " AND kept.change_id = ", arg{u.of.ID}, " AND ",
		u.inEffect("kept.change_id", "kept.finding_id"), " ORDER BY kept.finding_id")...)
}

// pairs are the restored findings as they are now (kept) and as they were (former).
func (u *undo) pairs() []any {
	return []any{
		"triage_change_findings kept CROSS JOIN triage_change_findings former WHERE kept.deployment_id = ", arg{u.DeploymentID}, " AND kept.change_id = ", arg{u.ID},
		" AND former.deployment_id = ", arg{u.DeploymentID}, " AND former.change_id = ", arg{u.of.ID}, " AND former.finding_id = kept.finding_id",
	}
}

// record writes the events, before the findings change.
func (u *undo) record(ctx context.Context) (err error) {
	u.Changed, err = u.exec(ctx, join(events, "SELECT f.deployment_id, f.id, 'triage_undone', f.status, "+StatusSQL("f.state", "restored.triage_state")+
		", COALESCE(restored.triage_reason, ''), restored.note, ", u.actor(), " FROM (SELECT former.*, CASE WHEN COALESCE(former.triage_comment, '') ="+
		" COALESCE(kept.triage_comment, '') THEN '' ELSE COALESCE(former.triage_comment, '') END AS note FROM ", u.pairs(), " AND NOT ("+same("kept", "former")+
		")) AS restored CROSS JOIN findings f WHERE f.id = restored.finding_id")...)
	return err
}

func (u *undo) restore(ctx context.Context) error {
	_, err := u.exec(ctx, join("UPDATE findings SET triage_state = restored.triage_state, triage_reason = restored.triage_reason,"+
		" triage_comment = restored.triage_comment, triaged_at = restored.triaged_at, status = "+StatusSQL("findings.state", "restored.triage_state")+
		" FROM (SELECT former.* FROM ", u.pairs(), ") AS restored WHERE findings.id = restored.finding_id AND +findings.deployment_id = ", arg{u.DeploymentID})...)
	return err
}

// mark notes on the change that it is undone, if this is true of all its findings. Otherwise the rest can be undone
// later. The changes that the undo makes again are in effect.
func (u *undo) mark(ctx context.Context, complete bool) error {
	if complete {
		if err := u.tx.TriageChange.UpdateOneID(u.of.ID).SetUndoneBy(u.ID).Exec(ctx); err != nil {
			return err
		}
	}
	if len(u.of.remade) > 0 {
		if err := u.tx.TriageChange.Update().Where(store.WithIDs[predicate.TriageChange](u.of.remade)).ClearUndoneBy().Exec(ctx); err != nil {
			return err
		}
	}
	return u.tx.TriageChange.UpdateOneID(u.ID).SetChosen(u.Chosen).SetChanged(u.Changed).Exec(ctx)
}
