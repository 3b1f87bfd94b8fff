package findings

import (
	"context"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/list"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// triageLimit is the maximum number of findings of a request with a filter (contract facts 2.5).
const triageLimit = 3000

// Triage is the service group "triage".
type Triage struct {
	findingsv1.UnimplementedTriageServiceServer
	store *store.Store
}

// NewTriage serves triage on the store.
func NewTriage(st *store.Store) *Triage { return &Triage{store: st} }

// BulkTriage changes findings and their siblings in one transaction with three statements: select, record events,
// update.
func (s *Triage) BulkTriage(ctx context.Context, r *findingsv1.BulkTriageRequest) (*findingsv1.BulkTriageResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	f := triageFilter(deploymentID, r) // without the ids of the request: choose adds them
	where, err := f.Predicates(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	var triaged []int64
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		chosen, err := s.choose(ctx, tx, r.GetIssueIds(), where, limitOf(r))
		if err != nil || len(chosen) == 0 {
			return err
		}
		triaged, err = decisionOf(ctx, r).Apply(ctx, s.store, tx, f.IssueType, chosen)
		if err == nil {
			auditTriage(ctx, triaged)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(triaged)
	return &findingsv1.BulkTriageResponse{NumTriaged: int32(len(triaged)), TriagedIssues: triaged}, nil
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
	if len(named) > 0 {
		if err := lockProjects(ctx, tx, named); err != nil {
			return nil, err
		}
		return query.IDs(ctx)
	}
	chosen, err := query.IDs(ctx)
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	if err := lockProjects(ctx, tx, chosen); err != nil {
		return nil, err
	}
	again := tx.Finding.Query().Where(where...)
	again.Modify(store.FoundByIDs(chosen))
	return again.IDs(ctx)
}

// lockProjects serializes triage and imports of the same projects. It locks them in the order of their ids, which
// prevents deadlocks. PostgreSQL evaluates an array once; a subquery after IN may run again for each project.
func lockProjects(ctx context.Context, tx *ent.Tx, findings []int64) error {
	_, err := tx.Project.Query().Where(func(s *entsql.Selector) {
		owners := entsql.Dialect(s.Dialect()).Select(finding.FieldProjectID).Distinct().From(entsql.Table(finding.Table))
		owners.Where(store.InIDs(finding.FieldID, findings))
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString(s.C(project.FieldID) + " = ANY(ARRAY(").Join(owners).WriteString("))")
		}))
	}).Order(ent.Asc(project.FieldID)).ForUpdate().IDs(ctx)
	return err
}

func decisionOf(ctx context.Context, r *findingsv1.BulkTriageRequest) triage.Decision {
	deploymentID, _ := tenant.FromContext(ctx)
	d := triage.New(deploymentID, r.GetNewTriageState(), r.GetNewTriageReason(), r.GetNewNote())
	if p, ok := access.FromContext(ctx); ok {
		d.ActorKind, d.ActorID = string(p.Kind), p.ID
	}
	return d
}

func triageFilter(deploymentID int64, r *findingsv1.BulkTriageRequest) *list.Filter {
	return &list.Filter{
		DeploymentID:      deploymentID,
		IssueType:         r.GetIssueType(),
		Since:             r.GetSince(),
		Repos:             r.GetRepos(),
		ProjectTags:       r.GetProjectTags(),
		Visibilities:      r.GetRepositoryVisibility(),
		Ref:               r.GetRef(),
		Status:            r.GetStatus(),
		TriageReasons:     r.GetTriageReasons(),
		Severities:        r.GetSeverities(),
		ComponentTags:     r.GetComponentTags(),
		Policies:          slices.Concat(r.GetPolicies(), r.GetPolicyMode()),
		Rules:             r.GetRules(),
		Categories:        r.GetCategories(),
		Confidence:        r.GetConfidence(),
		Verdict:           r.GetAutotriageVerdict(),
		Exposures:         r.GetExposures(),
		Transitivities:    r.GetTransitivities(),
		Dependencies:      r.GetDependencies(),
		EPSS:              r.GetEpssProbability(),
		SecretTypes:       r.GetSecretTypes(),
		ValidationStates:  r.GetValidationState(),
		IncludeHistorical: r.GetIncludeHistorical() || len(r.GetIssueIds()) > 0,
	}
}
