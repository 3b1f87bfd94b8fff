package findings

import (
	"context"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/list"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// triageLimit is the maximum number of findings of a request with a filter (contract facts 2.5).
const triageLimit = 3000

// Triage is the service group "triage".
type Triage struct {
	findingsv1.UnimplementedTriageServiceServer
	store *store.Store
	jobs  *jobs.Jobs
}

// NewTriage serves triage on the store.
func NewTriage(st *store.Store, queue *jobs.Jobs) *Triage { return &Triage{store: st, jobs: queue} }

// BulkTriage changes findings and their siblings in one transaction. The number of its statements does not depend on
// the number of findings.
func (s *Triage) BulkTriage(ctx context.Context, r *findingsv1.BulkTriageRequest) (*findingsv1.BulkTriageResponse, error) {
	if r.GetNewTriageState() == "" && strings.TrimSpace(r.GetNewNote()) == "" {
		return nil, apierr.InvalidArgument("new_note", "one of new_triage_state and new_note is required, and new_note must not be blank")
	}
	deploymentID, _ := tenant.FromContext(ctx)
	f := list.FilterOf(deploymentID, r) // without the ids of the request: choose adds them
	where, err := f.Predicates(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	if err := triage.RefuseDevelopers(ctx, s.store.Reader, f.IssueType, r.GetNewTriageState()); err != nil {
		return nil, err
	}
	var triaged []int64
	var changeID int64
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		chosen, err := s.choose(ctx, tx, r.GetIssueIds(), where, limitOf(r))
		if err != nil || len(chosen) == 0 {
			return err
		}
		d := newDecision(ctx, s.jobs, triage.KindTriage, r.GetNewTriageState(), r.GetNewTriageReason(), r.GetNewNote())
		change, shown, err := d.Apply(ctx, s.store, tx, chosen)
		if err != nil {
			return err
		}
		triaged, changeID = shown, change.ID
		auditTriage(ctx, triaged)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(triaged)
	return &findingsv1.BulkTriageResponse{NumTriaged: int32(len(triaged)), TriagedIssues: triaged}, nameChange(ctx, changeID)
}

// auditTriage records one change for all findings. Each finding has a history of its own, and the decision is in the
// request of the audit entry.
func auditTriage(ctx context.Context, triaged []int64) {
	kind, id := "findings", int64(len(triaged))
	if len(triaged) == 1 {
		kind, id = "finding", triaged[0]
	}
	audit.Change(ctx, kind, id, nil, &findingsv1.BulkTriageResponse{NumTriaged: int32(len(triaged)), TriagedIssues: triaged})
}

// limitOf returns the maximum number of findings. 0 means no limit, for requests with ids.
func limitOf(r *findingsv1.BulkTriageRequest) int {
	if r.GetLimit() == 0 && len(r.GetIssueIds()) == 0 {
		return triageLimit
	}
	return int(r.GetLimit())
}

// choose returns the ids of the findings to triage. On PostgreSQL it locks the projects first and then evaluates the
// filter, because a concurrent transaction may change the same findings before the lock. Without ids in the request it
// also evaluates the filter before the lock, to find the projects. On SQLite, write transactions do not overlap.
func (s *Triage) choose(ctx context.Context, tx *ent.Tx, named []int64, where []predicate.Finding, limit int) ([]int64, error) {
	query := tx.Finding.Query().Where(where...)
	if limit > 0 {
		query.Order(list.NewestFirst).Limit(limit)
	}
	if len(named) > 0 {
		query.Modify(store.FoundByIDs(named))
	}
	if !s.store.Postgres() {
		return query.IDs(ctx)
	}
	if len(named) == 0 {
		var err error
		if named, err = query.IDs(ctx); err != nil || len(named) == 0 {
			return nil, err
		}
		query = tx.Finding.Query().Where(where...)
		query.Modify(store.FoundByIDs(named))
	}
	if err := s.store.PlanByIndexes(ctx, tx); err != nil {
		return nil, err
	}
	if _, err := triage.LockProjects(ctx, s.store, tx, store.WithIDs[predicate.Finding](named)); err != nil {
		return nil, err
	}
	return query.IDs(ctx)
}
