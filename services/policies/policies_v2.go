package policies

import (
	"context"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/remediationpolicy"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/etag"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// auditPolicy is the object kind of remediation policies in the audit trail.
	auditPolicy = "remediation_policy"
	// ifMatch is the metadata key of the header If-Match.
	ifMatch = "if-match"
)

// PoliciesV2 is the service group "policies V2".
type PoliciesV2 struct {
	policiesv1.UnimplementedPoliciesV2ServiceServer
	store *store.Store
}

// NewPoliciesV2 serves policies from the store.
func NewPoliciesV2(st *store.Store) *PoliciesV2 { return &PoliciesV2{store: st} }

// GetRemediationPolicies returns the bundle.
func (s *PoliciesV2) GetRemediationPolicies(ctx context.Context, _ *policiesv1.GetRemediationPoliciesRequest) (*policiesv1.GetRemediationPoliciesResponse, error) {
	current, err := load(ctx, s.store.Reader)
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
	current, err := load(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	wanted, problems, err := check(ctx, s.store.Reader, organization.Slug, r.GetBundle())
	if err != nil {
		return nil, err
	}
	response := &policiesv1.DryRunRemediationPoliciesResponse{StateVersion: current.version, ValidationErrors: problems}
	if len(problems) == 0 {
		current.compare(wanted, response)
	}
	return response, nil
}

// ApplyRemediationPolicies replaces the stored policies by the bundle.
func (s *PoliciesV2) ApplyRemediationPolicies(ctx context.Context, r *policiesv1.ApplyRemediationPoliciesRequest) (*policiesv1.ApplyRemediationPoliciesResponse, error) {
	expected := strings.TrimSpace(strings.Join(metadata.ValueFromIncomingContext(ctx, ifMatch), ","))
	if expected == "" {
		return nil, apierr.PreconditionRequired("the header If-Match is required: send the state_version that the bundle was made from")
	}
	response := &policiesv1.ApplyRemediationPoliciesResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		organization, err := lock(ctx, s.store, tx)
		if err != nil {
			return err
		}
		current, err := load(ctx, tx.Client())
		if err != nil {
			return err
		}
		if expected != current.version && !etag.Matches(expected, quoted(current.version)) {
			return apierr.Stale(current.version, "the policies have changed: If-Match names %s, the state_version is %s; read them again",
				apierr.Quote(expected), current.version)
		}
		wanted, problems, err := check(ctx, tx.Client(), organization.Slug, r.GetBundle())
		if err != nil {
			return err
		}
		if len(problems) > 0 {
			return bundleError(problems)
		}
		if err := current.replace(ctx, tx, wanted); err != nil {
			return err
		}
		after := newState(wanted)
		response.Bundle, response.StateVersion = after.bundle(organization.Slug), after.version
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// lock serializes applies to the deployment until the end of the transaction.
func lock(ctx context.Context, st *store.Store, tx *ent.Tx) (*ent.Deployment, error) {
	query := tx.Deployment.Query()
	if st.Postgres() {
		query.ForUpdate()
	}
	return query.Only(ctx)
}

// replace updates the stored policies to the wanted ones. Equal policies are not written.
func (s *state) replace(ctx context.Context, tx *ent.Tx, wanted []*policiesv1.RemediationPolicy) error {
	left := map[string]*ent.RemediationPolicy{}
	for _, row := range s.rows {
		left[row.Slug] = row
	}
	now, writes := store.Now(), []*ent.RemediationPolicyCreate{}
	for i, policy := range wanted {
		content, err := proto.MarshalOptions{Deterministic: true}.Marshal(policy)
		if err != nil {
			return err
		}
		slug, position := policy.GetSlug(), int32(i) //nolint:gosec // a bundle has at most 200
		row, before := left[slug], s.bySlug[slug]
		delete(left, slug)
		write := tx.RemediationPolicy.Create().SetSlug(slug).SetPosition(position).SetActive(policy.GetActive()).SetContent(content).
			SetCreatedAt(now).SetUpdatedAt(now)
		switch {
		case row == nil:
			audit.Change(ctx, auditPolicy, slug, nil, policy)
		case !proto.Equal(before, policy):
			audit.Change(ctx, auditPolicy, slug, before, policy)
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
		audit.Change(ctx, auditPolicy, row.Slug, s.bySlug[row.Slug], nil)
	}
	if len(gone) == 0 {
		return nil
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
			u.UpdatePosition().UpdateActive().UpdateContent().UpdateUpdatedAt()
		}).Exec(ctx)
}

func quoted(version string) string { return `"` + version + `"` }
