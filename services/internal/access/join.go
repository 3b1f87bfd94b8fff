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

// joinTeamRole is what users who join a deployment are in the teams that they join with it.
const joinTeamRole = "TEAM_ROLE_MEMBER"

// Join makes a user a member of a deployment and of its default teams. It is for callers that know why the user may
// join. fromClaims says that claims of the user's ID tokens made the membership. The user must not be a member.
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

// TakeInvitation takes up the open invitation of an e-mail address to a deployment; false says that there is none. The
// caller vouches that the address is verified.
func TakeInvitation(ctx context.Context, tx *ent.Tx, deploymentID int64, email string) (bool, error) {
	ctx = tenant.NewContext(ctx, deploymentID)
	taken, err := tx.Invitation.Update().Where(invitation.Email(email), invitation.AcceptedAtIsNil()).SetAcceptedAt(store.Now()).Save(ctx)
	return taken > 0, err
}
