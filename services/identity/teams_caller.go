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

// teamCaller is who asks about teams.
type teamCaller struct {
	deploymentID int64
	userID       int64
	role         access.Role
	// teams are his teams and those below; nil for administrators, who are in all of them.
	teams *access.Teams
}

// teamCallerOf reads the teams of the caller of an RPC. db is a client or a transaction.
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

// sees says whether a team exists for the caller.
func (c *teamCaller) sees(teamID int64) bool { return c.teams == nil || c.teams.Right(teamID) > 0 }

// manages says whether the caller may change the members and projects of a team, and the teams below it.
func (c *teamCaller) manages(teamID int64) bool {
	return c.teams == nil || c.role == access.RoleMember && c.teams.Right(teamID) == access.TeamManage
}

// owns says whether the caller may rename and delete a team: its own managers may not, those of the team above may.
func (c *teamCaller) owns(row *ent.Team) bool {
	return c.teams == nil || row.ParentID != nil && c.manages(*row.ParentID)
}

// limit lets the context see what the caller may triage by the teams as they are now. To see a project is not enough to
// share it: whoever manages a team could give himself the right to triage there.
func (c *teamCaller) limit(ctx context.Context) context.Context {
	if c.teams == nil {
		return ctx
	}
	return tenant.WithTeams(ctx, c.teams.IDs(access.TeamTriage))
}

// find returns a team that the caller sees. Errors: NOT_FOUND.
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

// scopes says what the caller is to a team.
func (c *teamCaller) scopes(teamID int64, direct map[int64]bool) (list []identityv1.TeamScope) {
	if direct[teamID] {
		list = append(list, identityv1.TeamScope_TEAM_SCOPE_DIRECT_MEMBER)
	}
	if c.manages(teamID) {
		list = append(list, identityv1.TeamScope_TEAM_SCOPE_MANAGE)
	}
	return list
}
