package access

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/invitation"
	"github.com/palisade/palisade/ent/team"
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

// TakeInvitation uses up the open invitation of an e-mail address to a deployment. It returns false when there is none.
// The caller has checked that the address is verified.
func TakeInvitation(ctx context.Context, tx *ent.Tx, deploymentID int64, email string) (bool, error) {
	ctx = tenant.NewContext(ctx, deploymentID)
	taken, err := tx.Invitation.Update().Where(invitation.Email(email), invitation.AcceptedAtIsNil()).SetAcceptedAt(store.Now()).Save(ctx)
	return taken > 0, err
}
