package policies

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/policyact"
	"github.com/palisade/palisade/ent/policyrun"
	"github.com/palisade/palisade/ent/remediationpolicy"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/etag"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
)

// ifMatch is the metadata key of the header If-Match.
const ifMatch = "if-match"

// PoliciesV2 is the service group "policies V2".
type PoliciesV2 struct {
	policiesv1.UnimplementedPoliciesV2ServiceServer
	store *store.Store
	// backTests has an element while a back-test runs.
	backTests chan struct{}
}

// NewPoliciesV2 serves policies from the store.
func NewPoliciesV2(st *store.Store) *PoliciesV2 {
	return &PoliciesV2{store: st, backTests: make(chan struct{}, 1)}
}

// GetRemediationPolicies returns the bundle.
func (s *PoliciesV2) GetRemediationPolicies(ctx context.Context, _ *policiesv1.GetRemediationPoliciesRequest) (*policiesv1.GetRemediationPoliciesResponse, error) {
	current, err := loadVisible(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	if known, err := etag.Unchanged(ctx, quoted(current.version)); err != nil || known {
		return &policiesv1.GetRemediationPoliciesResponse{}, err
	}
	organization, err := s.store.Reader.Deployment.Query().Only(ctx)
	if err != nil {
		return nil, err
	}
	return &policiesv1.GetRemediationPoliciesResponse{Bundle: current.bundle(organization.Slug), StateVersion: current.version}, nil
}

// DryRunRemediationPolicies compares the bundle with the stored policies.
func (s *PoliciesV2) DryRunRemediationPolicies(ctx context.Context, r *policiesv1.DryRunRemediationPoliciesRequest) (*policiesv1.DryRunRemediationPoliciesResponse, error) {
	organization, err := s.store.Reader.Deployment.Query().Only(ctx)
	if err != nil {
		return nil, err
	}
	current, err := loadVisible(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	wanted, err := check(ctx, s.store.Reader, organization.Slug, r.GetBundle())
	if err != nil {
		return nil, err
	}
	response := &policiesv1.DryRunRemediationPoliciesResponse{StateVersion: current.version, ValidationErrors: wanted.problems}
	if len(wanted.problems) > 0 {
		return response, nil
	}
	current.compare(wanted.policies, response)
	if err := countTouched(ctx, s.store.Reader, response.GetCreates(), response.GetUpdates(), response.GetDeletes()); err != nil {
		return nil, err
	}
	ends, err := stopped(ctx, s.store.Reader, current.policies, wanted.policies)
	if err != nil {
		return nil, err
	}
	response.Warnings = slices.Concat(warnings(wanted.policies), ends, wanted.warnings)
	return response, nil
}

// ApplyRemediationPolicies replaces the stored policies by the bundle.
func (s *PoliciesV2) ApplyRemediationPolicies(ctx context.Context, r *policiesv1.ApplyRemediationPoliciesRequest) (*policiesv1.ApplyRemediationPoliciesResponse, error) {
	expected, err := expectedVersion(ctx)
	if err != nil {
		return nil, err
	}
	response := &policiesv1.ApplyRemediationPoliciesResponse{}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		organization, err := s.store.LockDeployment(ctx, tx)
		if err != nil {
			return err
		}
		current, err := load(ctx, tx.Client())
		if err != nil {
			return err
		}
		if err := checkVersion(expected, current.version); err != nil {
			return err
		}
		wanted, err := check(ctx, tx.Client(), organization.Slug, r.GetBundle())
		if err != nil {
			return err
		}
		if len(wanted.problems) > 0 {
			return bundleError(wanted.problems)
		}
		if err := current.replace(ctx, tx, wanted.policies); err != nil {
			return err
		}
		after := newState(wanted.policies)
		response.Bundle, response.StateVersion = after.bundle(organization.Slug), after.version
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// replace updates the stored policies to the wanted ones. Equal policies are not written.
func (s *state) replace(ctx context.Context, tx *ent.Tx, wanted []*policiesv1.RemediationPolicy) error {
	left := map[string]*ent.RemediationPolicy{}
	for _, row := range s.rows {
		left[row.Slug] = row
	}
	now, writes := store.Now(), []*ent.RemediationPolicyCreate{}
	for i, policy := range wanted {
		slug, position := policy.GetSlug(), int32(i) //nolint:gosec // a bundle has at most 200
		row, before := left[slug], s.bySlug[slug]
		delete(left, slug)
		write := tx.RemediationPolicy.Create().SetSlug(slug).SetPosition(position).SetActive(policy.GetActive()).
			SetCreatedAt(now).SetUpdatedAt(now)
		if _, err := remediation.Store(write.Mutation(), policy); err != nil {
			return err
		}
		switch {
		case row == nil:
			audit.Change(ctx, remediation.AuditKind, slug, nil, policy)
		case !proto.Equal(before, policy):
			audit.Change(ctx, remediation.AuditKind, slug, before, policy)
		case row.Position != position:
			write.SetUpdatedAt(row.UpdatedAt) // only its position changed
		default:
			continue
		}
		writes = append(writes, write)
	}
	if err := save(ctx, tx, writes); err != nil {
		return err
	}
	var gone []int64
	for _, row := range s.rows {
		if left[row.Slug] == nil {
			continue
		}
		gone = append(gone, row.ID)
		audit.Change(ctx, remediation.AuditKind, row.Slug, s.bySlug[row.Slug], nil)
	}
	if len(gone) == 0 {
		return nil
	}
	// A policy of the same slug is another policy: it acts about all findings.
	if _, err := tx.PolicyAct.Delete().Where(store.OneOf(policyact.FieldPolicyID, gone)).Exec(ctx); err != nil {
		return err
	}
	if _, err := tx.PolicyRun.Delete().Where(store.OneOf(policyrun.FieldPolicyID, gone)).Exec(ctx); err != nil {
		return err
	}
	_, err := tx.RemediationPolicy.Delete().Where(store.OneOf(remediationpolicy.FieldID, gone)).Exec(ctx)
	return err
}

// save upserts policies with one statement: a bundle has at most 200.
func save(ctx context.Context, tx *ent.Tx, writes []*ent.RemediationPolicyCreate) error {
	if len(writes) == 0 {
		return nil
	}
	return tx.RemediationPolicy.CreateBulk(writes...).OnConflictColumns(remediationpolicy.FieldDeploymentID, remediationpolicy.FieldSlug).
		Update(func(u *ent.RemediationPolicyUpsert) {
			u.UpdatePosition().UpdateActive().UpdateContent().UpdateGiven().UpdateUpdatedAt()
		}).Exec(ctx)
}

func quoted(version string) string { return `"` + version + `"` }
