package deployments

import (
	"context"
	"slices"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/teammember"
	"github.com/palisade/palisade/ent/teamproject"
	"github.com/palisade/palisade/ent/tenant"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// teamRoles maps team roles to the words of the older permission model.
var teamRoles = map[string]deploymentsv1.Role{
	"TEAM_ROLE_MANAGER":  deploymentsv1.Role_ROLE_MANAGER,
	"TEAM_ROLE_MEMBER":   deploymentsv1.Role_ROLE_DEVELOPER,
	"TEAM_ROLE_READONLY": deploymentsv1.Role_ROLE_READ_ONLY,
}

// groupsOf reads the teams of users, in five queries for any number of users.
func groupsOf(ctx context.Context, db *ent.Client, userIDs []int64) (map[int64][]*deploymentsv1.GroupWithRole, error) {
	links, err := db.TeamMember.Query().
		Where(func(s *sql.Selector) { s.Where(store.InIDs(s.C(teammember.FieldUserID), userIDs)) }).
		Order(teammember.ByTeamID()).All(ctx)
	if seen, limited := tenant.Teams(ctx); limited { // other teams are not found
		links = slices.DeleteFunc(links, func(l *ent.TeamMember) bool { return !slices.Contains(seen, l.TeamID) })
	}
	if err != nil || len(links) == 0 {
		return nil, err
	}
	ids := make([]int64, len(links))
	for i, link := range links {
		ids[i] = link.TeamID
	}
	groups, err := groupsByID(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	of := map[int64][]*deploymentsv1.GroupWithRole{}
	for _, link := range links {
		if group := groups[link.TeamID]; group != nil {
			of[link.UserID] = append(of[link.UserID], &deploymentsv1.GroupWithRole{Group: group, Role: teamRoles[link.Role]})
		}
	}
	return of, nil
}

func groupsByID(ctx context.Context, db *ent.Client, ids []int64) (map[int64]*deploymentsv1.Group, error) {
	rows, err := db.Team.Query().Where(func(s *sql.Selector) { s.Where(store.InIDs(s.C(team.FieldID), ids)) }).All(ctx)
	if err != nil {
		return nil, err
	}
	groups := make(map[int64]*deploymentsv1.Group, len(rows))
	ids = ids[:0] // only existing teams
	for _, row := range rows {
		groups[row.ID] = convertGroup(row)
		ids = append(ids, row.ID)
	}
	children, err := db.Team.Query().Where(func(s *sql.Selector) { s.Where(store.InIDs(s.C(team.FieldParentID), ids)) }).
		Order(team.ByID()).Select(team.FieldID, team.FieldParentID).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		group := groups[*child.ParentID]
		group.ChildGroupIds = append(group.ChildGroupIds, child.ID)
		group.ChildGroupCount++
	}
	var counts []struct {
		TeamID int64 `sql:"team_id"`
		Count  int64 `sql:"count"`
	}
	err = db.TeamMember.Query().Where(func(s *sql.Selector) { s.Where(store.InIDs(s.C(teammember.FieldTeamID), ids)) }).
		GroupBy(teammember.FieldTeamID).Aggregate(ent.Count()).Scan(ctx, &counts)
	if err != nil {
		return nil, err
	}
	for _, c := range counts {
		groups[c.TeamID].UserCount = c.Count
	}
	counts = nil
	err = db.TeamProject.Query().Where(func(s *sql.Selector) { s.Where(store.InIDs(s.C(teamproject.FieldTeamID), ids)) }).
		GroupBy(teamproject.FieldTeamID).Aggregate(ent.Count()).Scan(ctx, &counts)
	if err != nil {
		return nil, err
	}
	for _, c := range counts {
		groups[c.TeamID].RepositoryCount = c.Count
	}
	return groups, nil
}

func convertGroup(row *ent.Team) *deploymentsv1.Group {
	group := &deploymentsv1.Group{
		Id: row.ID, DeploymentId: row.DeploymentID, Name: row.Name, Slug: row.Slug, IsDefault: row.IsUserDefault,
		ParentGroupId:         row.ParentID,
		ProjectManagementType: deploymentsv1.ProjectManagementType_PROJECT_MANAGEMENT_TYPE_UNMANAGED,
	}
	if row.IsProjectDefault {
		group.ProjectManagementType = deploymentsv1.ProjectManagementType_PROJECT_MANAGEMENT_TYPE_ALL_PROJECTS
	}
	return group
}
