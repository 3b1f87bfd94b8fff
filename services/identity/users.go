package identity

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/invitation"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/deployments/details"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// auditSettings is the object kind of user settings in the audit trail.
const auditSettings = "user_settings"

// Users is the service group "users". Users belong to the server and not to a deployment, so it reads outside of tenant
// isolation: only the caller's row, the deployments that authentication found, and the deployments with an invitation
// for the caller.
type Users struct {
	identityv1.UnimplementedUsersServiceServer
	store *store.Store
}

// NewUsers serves the users of the store.
func NewUsers(st *store.Store) *Users { return &Users{store: st} }

// GetUser returns the caller.
func (s *Users) GetUser(ctx context.Context, r *identityv1.GetUserRequest) (*identityv1.GetUserResponse, error) {
	caller, row, err := s.self(ctx, r.GetUserId())
	if err != nil {
		return nil, err
	}
	return &identityv1.GetUserResponse{User: convertUser(row, caller)}, nil
}

// GetUserSettings returns the settings of the caller.
func (s *Users) GetUserSettings(ctx context.Context, r *identityv1.GetUserSettingsRequest) (*identityv1.GetUserSettingsResponse, error) {
	_, row, err := s.self(ctx, r.GetUserId())
	if err != nil {
		return nil, err
	}
	settings, err := settingsOf(row)
	if err != nil {
		return nil, err
	}
	return &identityv1.GetUserSettingsResponse{Settings: settings}, nil
}

// PatchUserSettings changes the caller's settings named in the request.
func (s *Users) PatchUserSettings(ctx context.Context, r *identityv1.PatchUserSettingsRequest) (*identityv1.PatchUserSettingsResponse, error) {
	caller, err := self(ctx, r.GetUserId())
	if err != nil {
		return nil, err
	}
	var row *ent.User
	err = s.store.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		query := tx.User.Query().Where(user.ID(caller.ID))
		if s.store.Postgres() {
			query.ForUpdate() // concurrent changes must not overwrite each other
		}
		if row, err = query.Only(ctx); err != nil {
			return err
		}
		before, err := settingsOf(row)
		if err != nil {
			return err
		}
		after := proto.CloneOf(before)
		if err := patchSettings(after, r); err != nil {
			return err
		}
		blob, err := proto.Marshal(stored(after))
		if err != nil {
			return err
		}
		audit.Change(ctx, auditSettings, row.ID, before, after)
		return tx.User.UpdateOneID(row.ID).SetSettings(blob).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &identityv1.PatchUserSettingsResponse{User: convertUser(row, caller)}, nil
}

// ListUserAuthorizedResources lists the resources that the caller may access.
func (s *Users) ListUserAuthorizedResources(ctx context.Context, _ *identityv1.ListUserAuthorizedResourcesRequest) (*identityv1.ListUserAuthorizedResourcesResponse, error) {
	caller, row, err := s.self(ctx, 0)
	if err != nil {
		return nil, err
	}
	inviting, err := s.joinable(ctx, row, caller)
	if err != nil {
		return nil, err
	}
	connected, err := s.store.Reader.ScmConfig.Query().Where(store.OneOf(scmconfig.FieldDeploymentID, deploymentsOf(caller))).
		Order(ent.Asc(scmconfig.FieldDeploymentID, scmconfig.FieldID)).
		Select(scmconfig.FieldID, scmconfig.FieldDeploymentID, scmconfig.FieldType, scmconfig.FieldNamespace).All(tenant.System(ctx))
	if err != nil {
		return nil, err
	}
	response := &identityv1.ListUserAuthorizedResourcesResponse{}
	for _, g := range grantsOf(caller) {
		response.Current = append(response.Current, &identityv1.DeploymentIdentity{
			SourceId: g.DeploymentID, Name: g.Name, SourceType: providerOf(row), DeploymentId: g.DeploymentID,
		})
	}
	for _, d := range inviting {
		response.Joinable = append(response.Joinable, &identityv1.DeploymentIdentity{
			SourceId: d.ID, Name: d.Name, SourceType: providerOf(row), DeploymentId: d.ID,
		})
	}
	for _, c := range connected {
		response.Scm = append(response.Scm, &identityv1.DeploymentIdentity{
			SourceId: c.ID, Name: c.Namespace, SourceType: hostWord(c.Type), DeploymentId: c.DeploymentID, ScmName: c.Namespace,
		})
	}
	return response, nil
}

// ListUserJoinableOrgs lists the deployments with an open invitation for the caller.
func (s *Users) ListUserJoinableOrgs(ctx context.Context, r *identityv1.ListUserJoinableOrgsRequest) (*identityv1.ListUserJoinableOrgsResponse, error) {
	caller, row, err := s.self(ctx, r.GetUserId())
	if err != nil {
		return nil, err
	}
	rows, err := s.joinable(ctx, row, caller)
	if err != nil {
		return nil, err
	}
	orgs, err := organizations(rows)
	return &identityv1.ListUserJoinableOrgsResponse{UserId: caller.ID, Orgs: orgs}, err
}

// ListUserOrgs lists the deployments of the caller.
func (s *Users) ListUserOrgs(ctx context.Context, r *identityv1.ListUserOrgsRequest) (*identityv1.ListUserOrgsResponse, error) {
	caller, err := self(ctx, r.GetUserId())
	if err != nil {
		return nil, err
	}
	rows, err := s.store.Reader.Deployment.Query().Where(store.OneOf(deployment.FieldID, deploymentsOf(caller))).
		Order(deployment.ByID()).All(tenant.System(ctx))
	if err != nil {
		return nil, err
	}
	orgs, err := organizations(rows)
	return &identityv1.ListUserOrgsResponse{UserId: caller.ID, Orgs: orgs}, err
}

// self returns the caller; userID, if given, must be the caller's (contract facts, section 6, Users).
func self(ctx context.Context, userID int64) (*access.Principal, error) {
	caller, _ := access.FromContext(ctx)
	if userID != 0 && userID != caller.ID {
		return nil, apierr.PermissionDenied("userId must be the caller's own id, %d, or left out, got %d", caller.ID, userID)
	}
	return caller, nil
}

// self also reads the caller's row.
func (s *Users) self(ctx context.Context, userID int64) (*access.Principal, *ent.User, error) {
	caller, err := self(ctx, userID)
	if err != nil {
		return nil, nil, err
	}
	row, err := s.store.Reader.User.Query().Where(user.ID(caller.ID)).Only(tenant.System(ctx))
	if ent.IsNotFound(err) {
		err = apierr.Unauthenticated("the user of this credential no longer exists") // since the call began
	}
	return caller, row, err
}

// joinable returns the deployments that have invited a user's address, except the ones that the user is a member of.
func (s *Users) joinable(ctx context.Context, row *ent.User, caller *access.Principal) ([]*ent.Deployment, error) {
	ctx = tenant.System(ctx)
	var inviting []int64
	err := s.store.Reader.Invitation.Query().Where(invitation.Email(strings.ToLower(row.Email)), invitation.AcceptedAtIsNil(),
		store.NoneOf(invitation.FieldDeploymentID, deploymentsOf(caller))).Select(invitation.FieldDeploymentID).Scan(ctx, &inviting)
	if err != nil || len(inviting) == 0 {
		return nil, err
	}
	return s.store.Reader.Deployment.Query().Where(store.OneOf(deployment.FieldID, inviting)).Order(deployment.ByID()).All(ctx)
}

// organizations converts deployments to the contract's deployment.v1.Deployment.
func organizations(rows []*ent.Deployment) ([]*deploymentsv1.DeploymentDetails, error) {
	out := make([]*deploymentsv1.DeploymentDetails, len(rows))
	for i, row := range rows {
		shown, err := details.Of(row)
		if err != nil {
			return nil, err
		}
		out[i] = shown
	}
	return out, nil
}
