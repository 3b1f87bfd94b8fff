package deployments

import (
	"context"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmapp"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/ent/tenant"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/deployments/details"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// Object kinds in the audit trail.
const (
	auditDeployment = "deployment"
	auditFeedback   = "product_feedback"
)

// githubTypes are the host types that support GitHub applications.
var githubTypes = []string{"SCM_TYPE_GITHUB", "SCM_TYPE_GITHUB_ENTERPRISE"}

// appComplete is the state of an application with a completed registration.
const appComplete = "complete"

// Deployment is the service group "deployment".
type Deployment struct {
	deploymentsv1.UnimplementedDeploymentServiceServer
	store            *store.Store
	policiesMigrated bool
}

// NewDeployment serves the settings and the users of deployments from the store. New deployments begin migrated to
// detection policies if policiesMigrated.
func NewDeployment(st *store.Store, policiesMigrated bool) *Deployment {
	return &Deployment{store: st, policiesMigrated: policiesMigrated}
}

// GetDeployment returns the deployment in the path.
func (s *Deployment) GetDeployment(ctx context.Context, _ *deploymentsv1.GetDeploymentRequest) (*deploymentsv1.GetDeploymentResponse, error) {
	record, err := s.record(ctx)
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.GetDeploymentResponse{Deployment: record}, nil
}

// GetDeploymentByToken returns the token's only deployment.
func (s *Deployment) GetDeploymentByToken(ctx context.Context, _ *deploymentsv1.GetDeploymentByTokenRequest) (*deploymentsv1.GetDeploymentByTokenResponse, error) {
	grant, err := onlyGrant(ctx)
	if err != nil {
		return nil, err
	}
	record, err := s.record(tenant.NewContext(ctx, grant.DeploymentID))
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.GetDeploymentByTokenResponse{Deployment: record}, nil
}

// GetCurrentDeployment returns id and name of the token's deployment (contract facts, section 10).
func (s *Deployment) GetCurrentDeployment(ctx context.Context, _ *deploymentsv1.GetCurrentDeploymentRequest) (*deploymentsv1.GetCurrentDeploymentResponse, error) {
	grant, err := onlyGrant(ctx)
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.GetCurrentDeploymentResponse{
		Deployment: &deploymentsv1.DeploymentReference{Id: grant.DeploymentID, Name: grant.Name},
	}, nil
}

// UpdateDeployment changes the display name or the default role of new users.
func (s *Deployment) UpdateDeployment(ctx context.Context, r *deploymentsv1.UpdateDeploymentRequest) (*deploymentsv1.UpdateDeploymentResponse, error) {
	name := strings.TrimSpace(r.GetDisplayName())
	if r.DisplayName != nil && name == "" {
		return nil, apierr.InvalidArgument("displayName", "displayName must not be blank")
	}
	out, err := s.change(ctx, func(update *ent.DeploymentUpdateOne) {
		if name != "" {
			update.SetName(name)
		}
		if r.GetDefaultUserRole() != deploymentsv1.OrgRole_ORG_ROLE_UNSPECIFIED {
			update.SetDefaultRole(r.GetDefaultUserRole().String())
		}
	})
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.UpdateDeploymentResponse{Deployment: out}, nil
}

// GetDeploymentAuthorizedActions returns the caller's permissions in the older model.
func (s *Deployment) GetDeploymentAuthorizedActions(ctx context.Context, _ *deploymentsv1.GetDeploymentAuthorizedActionsRequest) (*deploymentsv1.GetDeploymentAuthorizedActionsResponse, error) {
	response := &deploymentsv1.GetDeploymentAuthorizedActionsResponse{}
	if grant, ok := access.GrantFromContext(ctx); ok {
		response.AuthorizedActions = access.Actions(grant.Role)
	}
	return response, nil
}

// GetDeploymentDefaultUserRole returns the default role of new users.
func (s *Deployment) GetDeploymentDefaultUserRole(ctx context.Context, _ *deploymentsv1.GetDeploymentDefaultUserRoleRequest) (*deploymentsv1.GetDeploymentDefaultUserRoleResponse, error) {
	row, err := s.store.Reader.Deployment.Query().Only(ctx)
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.GetDeploymentDefaultUserRoleResponse{DefaultUserRole: details.Role(row.DefaultRole)}, nil
}

// GetDeploymentGitHubAppStatus reports whether a GitHub application is registered.
func (s *Deployment) GetDeploymentGitHubAppStatus(ctx context.Context, r *deploymentsv1.GetDeploymentGitHubAppStatusRequest) (*deploymentsv1.GetDeploymentGitHubAppStatusResponse, error) {
	query := s.store.Reader.ScmApp.Query().Where(scmapp.State(appComplete), scmapp.ScmTypeIn(githubTypes...))
	if r.GetWithCodeAccess() {
		query.Where(scmapp.CodeAccess(true))
	}
	exists, err := query.Exist(ctx)
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.GetDeploymentGitHubAppStatusResponse{GithubAppStatus: exists}, nil
}

// UpdateDeploymentHasTriageViaComment enables or disables triage by replies to review comments.
func (s *Deployment) UpdateDeploymentHasTriageViaComment(ctx context.Context, r *deploymentsv1.UpdateDeploymentHasTriageViaCommentRequest) (*deploymentsv1.UpdateDeploymentHasTriageViaCommentResponse, error) {
	out, err := s.change(ctx, func(update *ent.DeploymentUpdateOne) { update.SetTriageViaComment(r.GetHasTriageViaComment()) })
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.UpdateDeploymentHasTriageViaCommentResponse{HasTriageViaComment: out.GetFeatures().GetHasTriageViaComment()}, nil
}

// UpdateDeploymentHasDeepsemgrep enables or disables analysis across files.
func (s *Deployment) UpdateDeploymentHasDeepsemgrep(ctx context.Context, r *deploymentsv1.UpdateDeploymentHasDeepsemgrepRequest) (*deploymentsv1.UpdateDeploymentHasDeepsemgrepResponse, error) {
	out, err := s.change(ctx, func(update *ent.DeploymentUpdateOne) { update.SetCrossFileAnalysis(r.GetHasDeepsemgrep()) })
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.UpdateDeploymentHasDeepsemgrepResponse{HasDeepsemgrep: out.GetFeatures().GetHasDeepsemgrep()}, nil
}

// UpdateDeploymentHasDependencyQuery enables or disables dependency queries.
func (s *Deployment) UpdateDeploymentHasDependencyQuery(ctx context.Context, r *deploymentsv1.UpdateDeploymentHasDependencyQueryRequest) (*deploymentsv1.UpdateDeploymentHasDependencyQueryResponse, error) {
	out, err := s.change(ctx, func(update *ent.DeploymentUpdateOne) { update.SetDependencyQuery(r.GetHasDependencyQuery()) })
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.UpdateDeploymentHasDependencyQueryResponse{HasDependencyQuery: out.GetFeatures().GetHasDependencyQuery()}, nil
}

// SendDeploymentToggleFeedback stores the feedback for the operator of the server.
func (s *Deployment) SendDeploymentToggleFeedback(ctx context.Context, r *deploymentsv1.SendDeploymentToggleFeedbackRequest) (*deploymentsv1.SendDeploymentToggleFeedbackResponse, error) {
	principal, _ := access.FromContext(ctx)
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.ProductFeedback.Create().SetFeatureAction(r.GetFeatureAction()).SetFeedback(r.GetFeedback()).
			SetActorKind(string(principal.Kind)).SetActorID(principal.ID).SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		audit.Change(ctx, auditFeedback, row.ID, nil, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.SendDeploymentToggleFeedbackResponse{}, nil
}

// record reads the context's deployment in its older form.
func (s *Deployment) record(ctx context.Context) (*deploymentsv1.DeploymentRecord, error) {
	row, err := s.store.Reader.Deployment.Query().Only(ctx)
	if err != nil {
		return nil, err
	}
	names, err := s.store.Reader.ScmConfig.Query().Order(scmconfig.ByID()).Limit(1).Select(scmconfig.FieldNamespace).Strings(ctx)
	if err != nil {
		return nil, err
	}
	return details.Record(row, append(names, "")[0])
}

// change changes the deployment's row in a transaction and returns the result.
func (s *Deployment) change(ctx context.Context, fn func(*ent.DeploymentUpdateOne)) (out *deploymentsv1.DeploymentDetails, err error) {
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := lock(ctx, s.store, tx)
		if err != nil {
			return err
		}
		before, err := details.Of(row)
		if err != nil {
			return err
		}
		update := row.Update()
		fn(update)
		if len(update.Mutation().Fields()) > 0 {
			if row, err = update.Save(ctx); err != nil {
				return err
			}
		}
		if out, err = details.Of(row); err != nil {
			return err
		}
		audit.Change(ctx, auditDeployment, row.ID, before, out)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// lock reads the context's deployment and locks it until the end of the transaction.
func lock(ctx context.Context, st *store.Store, tx *ent.Tx) (*ent.Deployment, error) {
	row, err := st.LockDeployment(ctx, tx)
	if ent.IsNotFound(err) {
		return nil, errNoDeployment()
	}
	return row, err
}

// onlyGrant returns a token's only deployment.
func onlyGrant(ctx context.Context) (access.Grant, error) {
	list := grants(ctx)
	if len(list) != 1 {
		return access.Grant{}, errNoDeployment()
	}
	return list[0], nil
}

// errNoDeployment is the same error as for a deployment that is not the caller's.
func errNoDeployment() error { return apierr.NotFound("deployment not found") }
