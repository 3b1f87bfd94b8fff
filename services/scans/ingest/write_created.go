package ingest

import (
	"context"
	"math"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/policies/pathignore"
)

// createdPart is the number of "created" events that are written at once. crowdedPart is the number while requests
// compete for the processors of the node.
const createdPart, crowdedPart = 1000, 100

// createdEvents writes the events of findings that a scan created. The source of the rows follows.
const createdEvents = `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, scan_id, at)
	SELECT deployment_id, id, CASE WHEN triage_state = '` + lifecycle.Untriaged + `' THEN 'created' ELSE 'triage_inherited' END, '', status,
		COALESCE(triage_reason, '` + pathignore.ReasonBefore + "' || ignored_by_pattern || '" + pathignore.ReasonAfter + `', ''), '', 'scan', first_seen_scan_id, first_seen_scan_id, created_at FROM `

// PostgreSQL creates findings and their events in one statement: recordsCreated precedes the INSERT, createdRecords
// follows it.
const (
	recordsCreated = "WITH made AS ("
	createdRecords = " RETURNING id, deployment_id, triage_state, triage_reason, ignored_by_pattern, status, first_seen_scan_id, created_at) " + createdEvents + "made"
)

// recordCreated writes an event for each finding that this scan created, unless they were written together.
func (w *writer) recordCreated(ctx context.Context) error {
	if w.Total("created")+w.Total(superseded) == 0 {
		return nil
	}
	if !w.store.Postgres() {
		if err := w.recordInParts(ctx); err != nil {
			return err
		}
	}
	return w.recordRecognised(ctx)
}

// recordInParts writes these events after the findings, in parts.
func (w *writer) recordInParts(ctx context.Context) error {
	for after, last := int64(0), int64(0); last != math.MaxInt64; after = last {
		var err error
		if last, err = w.endOfPart(ctx, after); err != nil {
			return err
		}
		err = w.store.Exec(ctx, w.tx, createdEvents+"findings WHERE deployment_id = ? AND first_seen_scan_id = ? AND id > ? AND id <= ?",
			w.deploymentID, w.scan.ID, after, last)
		if err != nil {
			return err
		}
		w.work.Yield(ctx)
	}
	return nil
}

// endOfPart returns the id of the last finding of the next part.
func (w *writer) endOfPart(ctx context.Context, after int64) (int64, error) {
	part := createdPart
	if w.crowded() {
		part = crowdedPart
	}
	last, err := w.tx.Finding.Query().Where(finding.DeploymentID(w.deploymentID), finding.FirstSeenScanID(w.scan.ID), finding.IDGT(after)).
		Order(ent.Asc(finding.FieldID)).Offset(part - 1).Limit(1).IDs(ctx)
	if err != nil || len(last) == 0 {
		return math.MaxInt64, err
	}
	return last[0], nil
}
