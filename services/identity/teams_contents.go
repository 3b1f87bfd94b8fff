package identity

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/teammember"
	"github.com/palisade/palisade/ent/teamproject"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// userAction is a change of a member.
type userAction struct {
	action identityv1.UpdateAction
	role   identityv1.TeamRole
}

// teamChange holds the changes of a team's projects and members, each named once.
type teamChange struct {
	projects map[int64]identityv1.UpdateAction
	users    map[int64]userAction
	// Field paths in the request, for errors.
	projectsField, usersField string
}

// newTeamChange reads the projects and members of a new team.
func newTeamChange(t *identityv1.TeamCreate) (*teamChange, error) {
	c := &teamChange{
		projects: map[int64]identityv1.UpdateAction{}, users: map[int64]userAction{},
		projectsField: "team.repositoryIds", usersField: "team.users",
	}
	for _, id := range t.GetRepositoryIds() {
		c.projects[id] = identityv1.UpdateAction_UPDATE_ACTION_ADD
	}
	for _, u := range t.GetUsers() {
		if err := c.user(u.GetUserId(), userAction{identityv1.UpdateAction_UPDATE_ACTION_ADD, u.GetRole()}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// updatedTeam reads the changes of a team.
func updatedTeam(t *identityv1.TeamUpdate) (*teamChange, error) {
	c := &teamChange{
		projects: map[int64]identityv1.UpdateAction{}, users: map[int64]userAction{},
		projectsField: "team.repositories", usersField: "team.users",
	}
	for i, p := range t.GetRepositories() {
		switch p.GetAction() {
		case identityv1.UpdateAction_UPDATE_ACTION_ADD, identityv1.UpdateAction_UPDATE_ACTION_REMOVE:
		default:
			return nil, apierr.InvalidArgument(fmt.Sprintf("%s[%d].action", c.projectsField, i),
				"%s[%d].action must be UPDATE_ACTION_ADD or UPDATE_ACTION_REMOVE, got %s", c.projectsField, i, p.GetAction())
		}
		if action, twice := c.projects[p.GetRepositoryId()]; twice && action != p.GetAction() {
			return nil, apierr.InvalidArgument(c.projectsField, "%s must name each project with one action, got two for %d", c.projectsField, p.GetRepositoryId())
		}
		c.projects[p.GetRepositoryId()] = p.GetAction()
	}
	for i, u := range t.GetUsers() {
		wanted := userAction{u.GetAction(), u.GetRole()}
		switch {
		case wanted.action == identityv1.UpdateAction_UPDATE_ACTION_UNSPECIFIED:
			return nil, apierr.InvalidArgument(fmt.Sprintf("%s[%d].action", c.usersField, i),
				"%s[%d].action must be UPDATE_ACTION_ADD, UPDATE_ACTION_UPDATE or UPDATE_ACTION_REMOVE, got none", c.usersField, i)
		case wanted.action == identityv1.UpdateAction_UPDATE_ACTION_REMOVE:
			wanted.role = identityv1.TeamRole_TEAM_ROLE_UNSPECIFIED
		case wanted.action == identityv1.UpdateAction_UPDATE_ACTION_UPDATE && wanted.role == identityv1.TeamRole_TEAM_ROLE_UNSPECIFIED:
			return nil, apierr.InvalidArgument(c.usersField, "%s must have a role with UPDATE_ACTION_UPDATE, got none for user %d", c.usersField, u.GetUserId())
		}
		if err := c.user(u.GetUserId(), wanted); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *teamChange) user(id int64, wanted userAction) error {
	if known, twice := c.users[id]; twice && known != wanted {
		return apierr.InvalidArgument(c.usersField, "%s must name each user with one action and one role, got two for %d", c.usersField, id)
	}
	c.users[id] = wanted
	return nil
}

// check rejects projects that the caller may not share (see limit) and users outside of the deployment. The error names
// all of them. teamID is 0 for a new team.
func (c *teamChange) check(ctx context.Context, tx *ent.Tx, caller *teamCaller, teamID int64) error {
	var problems []string
	named := slices.Sorted(maps.Keys(c.projects))
	seen, err := tx.Project.Query().Where(inTeams(project.FieldID, named)).IDs(caller.limit(ctx))
	if err != nil {
		return err
	}
	field := c.projectsField
	if unknown := without(named, seen); len(unknown) > 0 {
		problems = append(problems, c.projectsField+" must name projects of the deployment, got "+joinIDs(unknown))
	} else {
		field = c.usersField
	}
	strangers, outsiders, err := c.unknownUsers(ctx, tx, teamID)
	if err != nil {
		return err
	}
	if len(strangers) > 0 {
		problems = append(problems, c.usersField+" must name users of the deployment, got "+joinIDs(strangers))
	}
	if len(outsiders) > 0 {
		problems = append(problems, c.usersField+" can change only members of the team with UPDATE_ACTION_UPDATE, got "+joinIDs(outsiders))
	}
	if len(problems) == 0 {
		return nil
	}
	return apierr.InvalidArgument(field, "%s", strings.Join(problems, "; "))
}

// unknownUsers finds two kinds of invalid users: users outside of the deployment, except former members who are to be
// removed from the team, and users of the deployment who are to be changed but are not in the team.
func (c *teamChange) unknownUsers(ctx context.Context, tx *ent.Tx, teamID int64) (strangers, outsiders []int64, err error) {
	named := slices.Sorted(maps.Keys(c.users))
	known, err := tx.Membership.Query().Where(inTeams(membership.FieldUserID, named)).Select(membership.FieldUserID).All(ctx)
	if err != nil {
		return nil, nil, err
	}
	members, err := tx.TeamMember.Query().Where(teammember.TeamID(teamID), inTeams(teammember.FieldUserID, named)).
		Select(teammember.FieldUserID).All(ctx)
	if err != nil {
		return nil, nil, err
	}
	inDeployment, inTeam := map[int64]bool{}, map[int64]bool{}
	for _, row := range known {
		inDeployment[row.UserID] = true
	}
	for _, row := range members {
		inTeam[row.UserID] = true
	}
	for _, id := range named {
		action := c.users[id].action
		switch {
		case !inDeployment[id] && (!inTeam[id] || action != identityv1.UpdateAction_UPDATE_ACTION_REMOVE):
			strangers = append(strangers, id)
		case action == identityv1.UpdateAction_UPDATE_ACTION_UPDATE && !inTeam[id]:
			outsiders = append(outsiders, id)
		}
	}
	return strangers, outsiders, nil
}

// apply stores the change; call check first.
func (c *teamChange) apply(ctx context.Context, tx *ent.Tx, deploymentID, teamID int64) error {
	if err := c.applyProjects(ctx, tx, deploymentID, teamID); err != nil {
		return err
	}
	return c.applyUsers(ctx, tx, deploymentID, teamID)
}

func (c *teamChange) applyProjects(ctx context.Context, tx *ent.Tx, deploymentID, teamID int64) error {
	if len(c.projects) == 0 {
		return nil
	}
	var added []*ent.TeamProjectCreate
	var removed []int64
	for id, action := range c.projects {
		if action == identityv1.UpdateAction_UPDATE_ACTION_REMOVE {
			removed = append(removed, id)
			continue
		}
		added = append(added, tx.TeamProject.Create().SetDeploymentID(deploymentID).SetTeamID(teamID).SetProjectID(id).SetCreatedAt(store.Now()))
	}
	read := func() (*identityv1.ListTeamReposResponse, error) {
		rows, err := tx.TeamProject.Query().Where(teamproject.TeamID(teamID), inTeams(teamproject.FieldProjectID, slices.Collect(maps.Keys(c.projects)))).
			Order(ent.Asc(teamproject.FieldProjectID)).All(ctx)
		return &identityv1.ListTeamReposResponse{DeploymentId: deploymentID, TeamId: teamID, RepositoryIds: projectIDs(rows)}, err
	}
	before, err := read()
	if err != nil {
		return err
	}
	for part := range slices.Chunk(added, store.RowsAtOnce) {
		err := tx.TeamProject.CreateBulk(part...).
			OnConflictColumns(teamproject.FieldDeploymentID, teamproject.FieldTeamID, teamproject.FieldProjectID).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
	}
	if len(removed) > 0 {
		_, err := tx.TeamProject.Delete().Where(teamproject.TeamID(teamID), inTeams(teamproject.FieldProjectID, removed)).Exec(ctx)
		if err != nil {
			return err
		}
	}
	after, err := read()
	if err != nil {
		return err
	}
	audit.Change(ctx, auditTeamProjects, teamID, before, after)
	return nil
}

func (c *teamChange) applyUsers(ctx context.Context, tx *ent.Tx, deploymentID, teamID int64) error {
	if len(c.users) == 0 {
		return nil
	}
	var removed []int64
	var added, given []*ent.TeamMemberCreate
	for id, wanted := range c.users {
		row := tx.TeamMember.Create().SetDeploymentID(deploymentID).SetTeamID(teamID).SetUserID(id).SetRole(wanted.role.String()).SetCreatedAt(store.Now())
		switch {
		case wanted.action == identityv1.UpdateAction_UPDATE_ACTION_REMOVE:
			removed = append(removed, id)
		case wanted.role == identityv1.TeamRole_TEAM_ROLE_UNSPECIFIED:
			added = append(added, row.SetRole(identityv1.TeamRole_TEAM_ROLE_MEMBER.String()))
		default:
			given = append(given, row)
		}
	}
	read := func() (*identityv1.ListTeamUsersResponse, error) {
		rows, err := tx.TeamMember.Query().Where(teammember.TeamID(teamID), inTeams(teammember.FieldUserID, slices.Collect(maps.Keys(c.users)))).
			Order(ent.Asc(teammember.FieldUserID)).All(ctx)
		return &identityv1.ListTeamUsersResponse{DeploymentId: deploymentID, TeamId: teamID, Users: teamUsers(rows)}, err
	}
	before, err := read()
	if err != nil {
		return err
	}
	if err := storeMembers(ctx, tx, added, given); err != nil {
		return err
	}
	if len(removed) > 0 {
		_, err := tx.TeamMember.Delete().Where(teammember.TeamID(teamID), inTeams(teammember.FieldUserID, removed)).Exec(ctx)
		if err != nil {
			return err
		}
	}
	after, err := read()
	if err != nil {
		return err
	}
	audit.Change(ctx, auditTeamMembers, teamID, before, after)
	return nil
}

// storeMembers upserts members: members without a given role keep their role, others get the given one.
func storeMembers(ctx context.Context, tx *ent.Tx, added, given []*ent.TeamMemberCreate) error {
	place := []string{teammember.FieldDeploymentID, teammember.FieldTeamID, teammember.FieldUserID}
	for part := range slices.Chunk(added, store.RowsAtOnce) {
		if err := tx.TeamMember.CreateBulk(part...).OnConflictColumns(place...).Ignore().Exec(ctx); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(given, store.RowsAtOnce) {
		err := tx.TeamMember.CreateBulk(part...).OnConflictColumns(place...).
			Update(func(u *ent.TeamMemberUpsert) { u.UpdateRole() }).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// without returns the ids that are not known.
func without(ids, known []int64) []int64 {
	found := make(map[int64]bool, len(known))
	for _, id := range known {
		found[id] = true
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return found[id] })
}

func joinIDs(ids []int64) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(words, ", ")
}
