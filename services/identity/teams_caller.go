package identity

import (
	"context"
	"database/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/tenant"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
)

// teamCaller is the caller of a team operation.
type teamCaller struct {
	deploymentID int64
	userID       int64
	role         access.Role
	// teams are the caller's teams and their subteams; nil for administrators, who have access to all.
	teams *access.Teams
}

// teamCallerOf reads the teams of an RPC's caller. db is a client or a transaction.
func teamCallerOf(ctx context.Context, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
},
) (*teamCaller, error) {
	grant, ok := access.GrantFromContext(ctx)
	principal, known := access.FromContext(ctx)
	if !ok || !known {
		return nil, apierr.PermissionDenied("teams are for users and tokens of a deployment")
	}
	c := &teamCaller{deploymentID: grant.DeploymentID, userID: principal.UserID, role: grant.Role}
	if c.role == access.RoleAdmin {
		return c, nil
	}
	var err error
	c.teams, err = access.TeamsOf(ctx, db, c.deploymentID, c.userID)
	return c, err
}

// sees reports whether a team is visible to the caller.
func (c *teamCaller) sees(teamID int64) bool { return c.teams == nil || c.teams.Right(teamID) > 0 }

// manages reports whether the caller may change the members and projects of a team, and its subteams.
func (c *teamCaller) manages(teamID int64) bool {
	return c.teams == nil || c.role == access.RoleMember && c.teams.Right(teamID) == access.TeamManage
}

// owns reports whether the caller may rename and delete a team. Managers of a parent team may; the team's own managers
// may not.
func (c *teamCaller) owns(row *ent.Team) bool {
	return c.teams == nil || row.ParentID != nil && c.manages(*row.ParentID)
}

// limit restricts the context to the projects that the caller may triage now. Read access to a project is not enough to
// share it: a manager could otherwise gain the right to triage it through an own team.
func (c *teamCaller) limit(ctx context.Context) context.Context {
	if c.teams == nil {
		return ctx
	}
	return tenant.WithTeams(ctx, c.teams.IDs(access.TeamTriage))
}

// find returns a team that is visible to the caller, else NOT_FOUND.
func (c *teamCaller) find(ctx context.Context, db *ent.Client, id int64) (*ent.Team, error) {
	absent := apierr.NotFound("team %d not found", id)
	if !c.sees(id) {
		return nil, absent
	}
	row, err := db.Team.Query().Where(team.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, absent
	}
	return row, err
}

// scopes returns the caller's scopes on a team.
func (c *teamCaller) scopes(teamID int64, direct map[int64]bool) (list []identityv1.TeamScope) {
	if direct[teamID] {
		list = append(list, identityv1.TeamScope_TEAM_SCOPE_DIRECT_MEMBER)
	}
	if c.manages(teamID) {
		list = append(list, identityv1.TeamScope_TEAM_SCOPE_MANAGE)
	}
	return list
}
