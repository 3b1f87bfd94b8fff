package findings

import (
	"context"
	"database/sql"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/savedview"
	"github.com/palisade/palisade/ent/team"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// The scopes of saved views.
const (
	scopeOwn        = "own"
	scopeTeam       = "team"
	scopeDeployment = "deployment"
)

// viewCaller is the caller of an operation on saved views.
type viewCaller struct {
	deploymentID int64
	// userID is the user, or the creator of the token; 0 for a token that no user created.
	userID int64
	role   access.Role
	// readsOnly is true for tokens that may only read. A read-only user has views of their own, but such a token must not
	// change the views of its creator.
	readsOnly bool
	teams     *access.Teams // nil for administrators, who have access to all
}

func viewCallerOf(ctx context.Context, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
},
) (*viewCaller, error) {
	grant, ok := access.GrantFromContext(ctx)
	principal, known := access.FromContext(ctx)
	if !ok || !known {
		return nil, apierr.PermissionDenied("saved views are for users and tokens of a deployment")
	}
	c := &viewCaller{
		deploymentID: grant.DeploymentID, userID: principal.UserID, role: grant.Role,
		readsOnly: principal.Kind == access.KindToken && grant.Role == access.RoleReadOnly,
	}
	if c.role == access.RoleAdmin {
		return c, nil
	}
	var err error
	c.teams, err = access.TeamsOf(ctx, db, c.deploymentID, c.userID)
	return c, err
}

// readable selects the views that the caller may read.
func (c *viewCaller) readable() predicate.SavedView {
	ofTeams := savedview.Scope(scopeTeam)
	if c.teams != nil {
		ofTeams = savedview.And(ofTeams, store.OneOf(savedview.FieldOwnerID, c.teams.IDs(access.TeamRead)))
	}
	shared := savedview.Or(savedview.Scope(scopeDeployment), ofTeams)
	if c.userID == 0 {
		return shared
	}
	return savedview.Or(shared, savedview.And(savedview.Scope(scopeOwn), savedview.OwnerID(c.userID)))
}

// mayChange reports whether the caller may change the views of a scope.
func (c *viewCaller) mayChange(scope string, owner int64) bool {
	switch {
	case c.readsOnly:
		return false
	case scope == scopeOwn:
		return c.userID != 0 && owner == c.userID
	case c.teams == nil:
		return true
	}
	return scope == scopeTeam && c.role == access.RoleMember && c.teams.Right(owner) == access.TeamManage
}

// find returns a view that the caller may read, else NOT_FOUND.
func (c *viewCaller) find(ctx context.Context, db *ent.Client, id int64) (*ent.SavedView, error) {
	row, err := db.SavedView.Query().Where(savedview.ID(id), c.readable()).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("saved view %d not found", id)
	}
	return row, err
}

// findToChange returns a view that the caller may change.
func (c *viewCaller) findToChange(ctx context.Context, tx *ent.Tx, id int64) (*ent.SavedView, error) {
	row, err := c.find(ctx, tx.Client(), id)
	if err == nil && !c.mayChange(row.Scope, row.OwnerID) {
		return nil, c.denied(row.Scope)
	}
	return row, err
}

func (c *viewCaller) denied(scope string) error {
	switch {
	case c.readsOnly:
		return apierr.PermissionDenied("read-only tokens may not change saved views")
	case scope == scopeTeam:
		return apierr.PermissionDenied("only administrators and managers of the team may change its views")
	}
	return apierr.PermissionDenied("only administrators may change the views of the deployment")
}

// place returns the scope and the owner of a new view.
func (c *viewCaller) place(ctx context.Context, tx *ent.Tx, r *findingsv1.CreateSavedViewRequest) (scope string, owner int64, err error) {
	if scope = r.GetScope(); scope == "" {
		scope = scopeOwn
	}
	if isTeam := scope == scopeTeam; isTeam != (r.GetTeamId() != 0) {
		return "", 0, apierr.InvalidArgument("team_id", "team_id must be set for the scope \"team\", and only for it")
	}
	switch scope {
	case scopeOwn:
		if c.userID == 0 {
			return "", 0, apierr.FailedPrecondition("no user created this token, so it has no views of its own")
		}
		owner = c.userID
	case scopeTeam:
		absent := apierr.NotFound("team %d not found", r.GetTeamId())
		if c.teams != nil && c.teams.Right(r.GetTeamId()) == 0 {
			return "", 0, absent
		}
		known, err := tx.Team.Query().Where(team.ID(r.GetTeamId())).Exist(ctx)
		if err != nil {
			return "", 0, err
		}
		if !known {
			return "", 0, absent
		}
		owner = r.GetTeamId()
	}
	if !c.mayChange(scope, owner) {
		return "", 0, c.denied(scope)
	}
	return scope, owner, nil
}

// change changes views in a transaction. Changes in one deployment are serialized with each other and with changes of
// teams, so that names, defaults, limits and teams still hold when the change is stored.
func (s *SavedViews) change(ctx context.Context, fn func(context.Context, *ent.Tx, *viewCaller) error) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if s.store.Postgres() {
			if _, err := tx.Deployment.Query().ForUpdate().OnlyID(ctx); err != nil {
				return fmt.Errorf("lock the deployment: %w", err)
			}
		}
		caller, err := viewCallerOf(ctx, tx)
		if err != nil {
			return err
		}
		return fn(ctx, tx, caller)
	})
}

func (c *viewCaller) convert(row *ent.SavedView) (*findingsv1.SavedView, error) {
	view := &findingsv1.SavedViewContent{}
	if err := proto.Unmarshal(row.Content, view); err != nil {
		return nil, err
	}
	out := &findingsv1.SavedView{
		Id: row.ID, Scope: row.Scope, Name: row.Name, Position: row.Position, IsDefault: row.IsDefault, View: view,
		CreatorId: row.CreatorID, CanEdit: c.mayChange(row.Scope, row.OwnerID), CreatedAt: store.Timestamp(&row.CreatedAt), UpdatedAt: store.Timestamp(&row.UpdatedAt),
	}
	if row.Scope == scopeTeam {
		out.TeamId = row.OwnerID
	}
	return out, nil
}
