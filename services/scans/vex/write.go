package vex

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/store"
)

// write stores changes and their events, a batch at a time.
func (a *application) write(ctx context.Context, changes []change) error {
	for batch := range slices.Chunk(changes, store.RowsAtOnce) {
		if err := a.update(ctx, batch); err != nil {
			return fmt.Errorf("write decisions: %w", err)
		}
		events := make([]*ent.FindingEventCreate, len(batch))
		for i, c := range batch {
			events[i] = a.tx.FindingEvent.Create().SetDeploymentID(a.DeploymentID).SetFindingID(c.ID).SetKind(c.kind).
				SetFromStatus(c.Status).SetToStatus(c.status).SetReason(c.reason).SetNote(c.by.note()).
				SetActorKind(Actor).SetActorID(a.ScanID).SetActorName(c.by.Author).SetScanID(a.ScanID).SetAt(a.now)
		}
		if err := a.tx.FindingEvent.CreateBulk(events...).Exec(ctx); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
	}
	return nil
}

// update writes the columns of all findings with one statement. The transaction holds the lock of their project.
func (a *application) update(ctx context.Context, changes []change) error {
	rows, args := make([]string, len(changes)), make([]any, 0, 6*len(changes)+2)
	for i, c := range changes {
		rows[i] = "(?, ?, ?, ?, ?, ?)"
		if i == 0 && a.store.Postgres() { // the types of all rows
			rows[i] = "(CAST(? AS bigint), CAST(? AS text), CAST(? AS text), CAST(? AS text), CAST(? AS text), CAST(? AS bigint))"
		}
		var at any
		if c.triagedAt != nil {
			at = *c.triagedAt
		}
		args = append(args, c.ID, c.state, c.status, c.reason, c.comment, at)
	}
	return a.store.Exec(ctx, a.tx, `UPDATE findings SET triage_state = v.column2, status = v.column3, triage_reason = NULLIF(v.column4, ''),
		triage_comment = NULLIF(v.column5, ''), triaged_at = v.column6 FROM (VALUES `+strings.Join(rows, ", ")+`) AS v
		WHERE findings.id = v.column1 AND +findings.deployment_id = ? AND findings.project_id = ?`, append(args, a.DeploymentID, a.ProjectID)...)
}
