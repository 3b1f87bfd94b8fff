package ingest

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// inOrder returns the decisions in a fixed order.
func (c closings) inOrder() []closing {
	return slices.SortedFunc(maps.Keys(c), func(a, b closing) int {
		return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.prefix, b.prefix), cmp.Compare(a.suffix, b.suffix), cmp.Compare(a.product, b.product))
	})
}

// stateChange is who closes findings, or keeps them open.
type stateChange struct {
	store                *store.Store
	tx                   *ent.Tx
	deploymentID, scanID int64 // the scan that did not report them; 0: no scan
	actorKind            string
	actorID              int64
	note                 string
	at                   int64
	// corrects says that the findings are closed already, and get another state.
	corrects bool
}

// from returns the states of the findings that change. Nobody has changed them meanwhile.
func (s stateChange) from() []string {
	if s.corrects {
		return []string{lifecycle.Fixed, lifecycle.Removed}
	}
	return []string{lifecycle.Unresolved, lifecycle.Muted}
}

// close sets the state of the findings that are still open, and writes an event with the reason for each. It returns
// their number.
func (s stateChange) close(ctx context.Context, f decision, ids []int64) (closed int, err error) {
	reason, args := "CAST(? AS TEXT)", []any{f.prefix}
	if f.about {
		reason, args = "CAST(? AS TEXT) || COALESCE(file_path, '') || CAST(? AS TEXT)", append(args, f.suffix)
	}
	slices.Sort(ids)
	for part := range slices.Chunk(ids, closeBatch) {
		if err := s.record(ctx, f.state, "CAST(? AS TEXT)", append([]any{f.state}, args...), reason, part); err != nil {
			return 0, err
		}
		n, err := s.tx.Finding.Update().Where(store.OfDeployment[predicate.Finding](s.deploymentID), store.WithIDs[predicate.Finding](part),
			finding.StateIn(s.from()...), finding.MergedIntoIsNil()).
			SetState(f.state).SetStatus(f.state).SetStateUpdatedAt(s.at).ClearIgnoredByPattern().Save(tenant.ByKey(ctx))
		if err != nil {
			return 0, err
		}
		closed += n
	}
	return closed, nil
}

// keep writes an event for each of the findings that are still open, and returns their number.
func (s stateChange) keep(ctx context.Context, kind, reason string, ids []int64) (kept int, err error) {
	for part := range slices.Chunk(ids, closeBatch) {
		if err := s.record(ctx, kind, "status", []any{reason}, "CAST(? AS TEXT)", part); err != nil {
			return 0, err
		}
		n, err := s.tx.Finding.Query().Where(finding.DeploymentID(s.deploymentID), store.WithIDs[predicate.Finding](part),
			finding.StateIn(lifecycle.Unresolved, lifecycle.Muted), finding.MergedIntoIsNil()).Count(ctx)
		if err != nil {
			return 0, err
		}
		kept += n
	}
	return kept, nil
}

// record writes an event for each of the findings that are still open. status and reason are SQL, with args.
func (s stateChange) record(ctx context.Context, kind, status string, args []any, reason string, ids []int64) error {
	inIDs, idArgs := s.store.InIDs(ids)
	scanID := sql.NullInt64{Int64: s.scanID, Valid: s.scanID != 0}
	args = append([]any{kind}, args...)
	args = append(append(args, s.note, s.actorKind, s.actorID, scanID, s.at, s.deploymentID), idArgs...)
	for _, state := range s.from() {
		args = append(args, state)
	}
	return s.store.Exec(ctx, s.tx, `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, scan_id, at)
		SELECT deployment_id, id, ?, status, `+status+`, `+reason+`, ?, ?, ?, ?, ? FROM findings WHERE +deployment_id = ? AND id`+inIDs+
		` AND state IN (?, ?) AND merged_into IS NULL`, args...)
}
