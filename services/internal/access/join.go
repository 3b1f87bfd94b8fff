package access

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/invitation"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/teamproject"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// joinTeamRole is the role of new members in the default teams.
const joinTeamRole = "TEAM_ROLE_MEMBER"

// Join makes a user a member of a deployment and of its default teams. The caller has checked that the user may join,
// and that the user is not a member yet. fromClaims marks a membership that claims of ID tokens created.
func Join(ctx context.Context, tx *ent.Tx, deploymentID, userID int64, role Role, fromClaims bool) error {
	ctx = tenant.NewContext(ctx, deploymentID)
	now := store.Now()
	err := tx.Membership.Create().SetUserID(userID).SetRole(string(role)).SetFromClaims(fromClaims).SetCreatedAt(now).Exec(ctx)
	if err != nil {
		return err
	}
	teams, err := tx.Team.Query().Where(team.IsUserDefault(true)).IDs(ctx)
	if err != nil {
		return err
	}
	joined := make([]*ent.TeamMemberCreate, len(teams))
	for i, id := range teams {
		joined[i] = tx.TeamMember.Create().SetTeamID(id).SetUserID(userID).SetRole(joinTeamRole).SetCreatedAt(now)
	}
	for part := range slices.Chunk(joined, store.RowsAtOnce) {
		if err := tx.TeamMember.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// JoinDefaultTeams adds the projects that the transaction just created, at the time createdAt, to the teams of the
// context's deployment that get all new ones. Of the names, projects that existed before have another time.
func JoinDefaultTeams(ctx context.Context, tx *ent.Tx, createdAt int64, names ...string) error {
	teams, err := tx.Team.Query().Where(team.IsProjectDefault(true)).IDs(ctx)
	if err != nil || len(teams) == 0 || len(names) == 0 {
		return err
	}
	projects, err := tx.Project.Query().Where(store.OneOf(project.FieldName, names), project.CreatedAt(createdAt)).IDs(ctx)
	if err != nil {
		return err
	}
	deploymentID, _ := tenant.FromContext(ctx)
	var joined []*ent.TeamProjectCreate
	for _, id := range teams {
		for _, projectID := range projects {
			joined = append(joined, tx.TeamProject.Create().SetDeploymentID(deploymentID).SetTeamID(id).SetProjectID(projectID).SetCreatedAt(createdAt))
		}
	}
	for part := range slices.Chunk(joined, store.RowsAtOnce) {
		err := tx.TeamProject.CreateBulk(part...).
			OnConflictColumns(teamproject.FieldDeploymentID, teamproject.FieldTeamID, teamproject.FieldProjectID).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// TakeInvitation uses up the open invitation of an e-mail address to a deployment. It returns false when there is none.
// The caller has checked that the address is verified.
func TakeInvitation(ctx context.Context, tx *ent.Tx, deploymentID int64, email string) (bool, error) {
	ctx = tenant.NewContext(ctx, deploymentID)
	taken, err := tx.Invitation.Update().Where(invitation.Email(email), invitation.AcceptedAtIsNil()).SetAcceptedAt(store.Now()).Save(ctx)
	return taken > 0, err
}
