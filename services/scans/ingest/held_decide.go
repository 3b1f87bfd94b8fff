package ingest

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/heldclose"
	"github.com/palisade/palisade/services/internal/store"
)

// HoldDecision is a person's decision about held closes.
type HoldDecision struct {
	ActorKind string
	ActorID   int64
	Note      string
}

// ConfirmHold closes the findings that still wait and are still open, and returns their number. The transaction has to
// hold the lock of the project.
func ConfirmHold(ctx context.Context, st *store.Store, tx *ent.Tx, row *ent.HeldClose, by HoldDecision) (after *ent.HeldClose, closed int, err error) {
	h, err := decodeHold(row)
	if err != nil {
		return nil, 0, err
	}
	change := by.change(st, tx, row)
	for _, d := range h.decisions {
		n, err := change.close(ctx, d.decision, slices.DeleteFunc(slices.Clone(d.ids), func(id int64) bool { return !contains(h.waiting, id) }))
		if err != nil {
			return nil, 0, fmt.Errorf("close the findings of held closes %d: %w", row.ID, err)
		}
		closed += n
	}
	h.leave(func(int64) bool { return true })
	content, err := h.encode()
	if err != nil {
		return nil, 0, err
	}
	after, err = by.decide(tx, row, HoldConfirmed, change.at).SetActive(false).SetWaiting(0).SetContent(content).Save(ctx)
	return after, closed, err
}

// RejectHold keeps the findings that still wait open, and returns their number. Later scans with the same version of
// the tool read the decision. The transaction has to hold the lock of the project.
func RejectHold(ctx context.Context, st *store.Store, tx *ent.Tx, row *ent.HeldClose, by HoldDecision) (after *ent.HeldClose, kept int, err error) {
	h, err := decodeHold(row)
	if err != nil {
		return nil, 0, err
	}
	change := by.change(st, tx, row)
	if kept, err = change.keep(ctx, "close_rejected", fmt.Sprintf("stays open although scan %d did not report it", row.ScanID), h.waiting); err != nil {
		return nil, 0, fmt.Errorf("record the rejection of held closes %d: %w", row.ID, err)
	}
	after, err = by.decide(tx, row, HoldRejected, change.at).Save(ctx)
	return after, kept, err
}

// LeaveHolds takes findings, sorted by id, out of the held closes of an analysis: they got another category or product,
// and only its scans say whether they are there.
func LeaveHolds(ctx context.Context, tx *ent.Tx, projectID int64, of Analysis, ids []int64, by HoldDecision) error {
	rows, err := tx.HeldClose.Query().Where(heldclose.ProjectID(projectID), heldclose.Tool(of.Tool), heldclose.AnalysisCategory(of.Category),
		heldclose.Active(true)).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		h, err := decodeHold(row)
		if err != nil {
			return err
		}
		if h.leave(func(id int64) bool { return contains(ids, id) }) == 0 {
			continue
		}
		if err := h.save(ctx, tx, by.ActorKind, by.ActorID, store.Now()); err != nil {
			return err
		}
	}
	return nil
}

func (by HoldDecision) change(st *store.Store, tx *ent.Tx, row *ent.HeldClose) stateChange {
	return stateChange{
		store: st, tx: tx, deploymentID: row.DeploymentID, scanID: row.ScanID, actorKind: by.ActorKind, actorID: by.ActorID, note: by.Note, at: store.Now(),
	}
}

func (by HoldDecision) decide(tx *ent.Tx, row *ent.HeldClose, state string, at int64) *ent.HeldCloseUpdateOne {
	return tx.HeldClose.UpdateOne(row).SetState(state).SetActorKind(by.ActorKind).SetActorID(by.ActorID).SetNote(by.Note).SetDecidedAt(at)
}

// HeldFinding is a finding whose close is or was held.
type HeldFinding struct {
	ID int64
	// State is what the finding would become.
	State string
	// Waiting says that no later scan reported or closed it.
	Waiting bool
	reason  decision
}

// Reason is why the scan would have closed the finding. path is its file.
func (f HeldFinding) Reason(path string) string {
	if f.reason.about {
		return f.reason.prefix + path + f.reason.suffix
	}
	return f.reason.prefix
}

// HeldFindings returns the findings of held closes in the order of their ids, from the first id after the given one.
func HeldFindings(row *ent.HeldClose, after int64) (iter.Seq[HeldFinding], error) {
	h, err := decodeHold(row)
	if err != nil {
		return nil, err
	}
	return func(yield func(HeldFinding) bool) {
		of := make(map[int64]decision, len(h.waiting)+len(h.left))
		ids := make([]int64, 0, len(of))
		for _, d := range h.decisions {
			for _, id := range d.ids {
				if id > after {
					of[id], ids = d.decision, append(ids, id)
				}
			}
		}
		slices.Sort(ids)
		for _, id := range ids {
			if !yield(HeldFinding{ID: id, State: of[id].state, Waiting: contains(h.waiting, id), reason: of[id]}) {
				return
			}
		}
	}, nil
}
