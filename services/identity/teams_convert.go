package identity

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/teammember"
	"github.com/palisade/palisade/ent/teamproject"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
)

// teamCount is a count by team; the group column has the team's id.
type teamCount struct {
	TeamID   int64 `sql:"team_id"`
	ParentID int64 `sql:"parent_id"`
	Count    int64 `sql:"count"`
}

// convert converts rows to the API's form, with four queries for any number of them.
func (c *teamCaller) convert(ctx context.Context, db *ent.Client, rows ...*ent.Team) ([]*identityv1.Team, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	var projects, users, children []teamCount
	if err := db.TeamProject.Query().Where(inTeams(teamproject.FieldTeamID, ids)).
		GroupBy(teamproject.FieldTeamID).Aggregate(ent.Count()).Scan(ctx, &projects); err != nil {
		return nil, err
	}
	if err := db.TeamMember.Query().Where(inTeams(teammember.FieldTeamID, ids)).
		GroupBy(teammember.FieldTeamID).Aggregate(ent.Count()).Scan(ctx, &users); err != nil {
		return nil, err
	}
	if err := db.Team.Query().Where(inTeams(team.FieldParentID, ids)).
		GroupBy(team.FieldParentID).Aggregate(ent.Count()).Scan(ctx, &children); err != nil {
		return nil, err
	}
	own, err := db.TeamMember.Query().Where(teammember.UserID(c.userID), inTeams(teammember.FieldTeamID, ids)).
		Select(teammember.FieldTeamID).All(ctx)
	if err != nil {
		return nil, err
	}
	direct := map[int64]bool{}
	for _, row := range own {
		direct[row.TeamID] = true
	}
	projectsOf, usersOf, childrenOf := byTeam(projects), byTeam(users), byTeam(children)
	list := make([]*identityv1.Team, len(rows))
	for i, row := range rows {
		list[i] = &identityv1.Team{
			Id: row.ID, DeploymentId: row.DeploymentID, Name: row.Name, Slug: row.Slug,
			RepositoryCount: projectsOf[row.ID], UserCount: usersOf[row.ID], ChildTeamCount: childrenOf[row.ID],
			IsProjectDefault: row.IsProjectDefault, IsUserDefault: row.IsUserDefault, AuthorizedScopes: c.scopes(row.ID, direct),
		}
		if row.ParentID != nil {
			list[i].ParentTeamId = *row.ParentID
		}
	}
	return list, nil
}

func byTeam(counts []teamCount) map[int64]int64 {
	of := make(map[int64]int64, len(counts))
	for _, c := range counts {
		of[max(c.TeamID, c.ParentID)] = c.Count
	}
	return of
}

func projectIDs(rows []*ent.TeamProject) []int64 {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ProjectID
	}
	return ids
}

func teamUsers(rows []*ent.TeamMember) []*identityv1.TeamUser {
	list := make([]*identityv1.TeamUser, len(rows))
	for i, row := range rows {
		list[i] = &identityv1.TeamUser{UserId: row.UserID, Role: identityv1.TeamRole(identityv1.TeamRole_value[row.Role])}
	}
	return list
}
