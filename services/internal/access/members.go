package access

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/savedview"
	"github.com/palisade/palisade/ent/teammember"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// LockMember reads the membership of a user in the context's deployment and locks the deployment. If two administrators
// demote each other concurrently, the second change must see the first. Errors: NOT_FOUND, also for a user outside of
// the deployment.
func LockMember(ctx context.Context, st *store.Store, tx *ent.Tx, userID int64) (*ent.Membership, error) {
	if _, err := st.LockDeployment(ctx, tx); err != nil {
		if ent.IsNotFound(err) {
			return nil, NoDeployment()
		}
		return nil, err
	}
	row, err := tx.Membership.Query().Where(membership.UserID(userID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("user %d not found", userID)
	}
	return row, err
}

// RequireOtherAdmin refuses to demote or remove the last administrator of the context's deployment.
func RequireOtherAdmin(ctx context.Context, tx *ent.Tx, userID int64, role Role) error {
	if role != RoleAdmin {
		return nil
	}
	others, err := tx.Membership.Query().Where(membership.Role(string(RoleAdmin)), membership.UserIDNEQ(userID)).Exist(ctx)
	if err == nil && !others {
		return apierr.FailedPrecondition("user %d is the last administrator of the deployment: give another user the role %s first", userID, RoleAdmin)
	}
	return err
}

// RemoveMember removes a member that LockMember has returned, unless it is the last administrator, and records it.
func RemoveMember(ctx context.Context, tx *ent.Tx, row *ent.Membership) error {
	if err := RequireOtherAdmin(ctx, tx, row.UserID, Role(row.Role)); err != nil {
		return err
	}
	before, err := shownMember(ctx, tx, row)
	if err != nil {
		return err
	}
	if err := EndMembership(ctx, tx, row.ID, row.UserID); err != nil {
		return err
	}
	audit.Change(ctx, auditMember, row.UserID, before, nil)
	return nil
}

// EndMembership deletes a membership with what belongs to it: memberships in teams, the user's own saved views, and the
// sessions. The API tokens of the user stay, and can do nothing without a membership.
func EndMembership(ctx context.Context, tx *ent.Tx, membershipID, userID int64) error {
	if _, err := tx.TeamMember.Delete().Where(teammember.UserID(userID)).Exec(ctx); err != nil {
		return err
	}
	if _, err := tx.SavedView.Delete().Where(savedview.Scope("own"), savedview.OwnerID(userID)).Exec(ctx); err != nil {
		return err
	}
	if err := tx.Membership.DeleteOneID(membershipID).Exec(ctx); err != nil {
		return err
	}
	_, err := RevokeSessions(ctx, tx, userID)
	return err
}

// ChangeRole changes the role of a member that LockMember has returned, unless it is the last administrator, and
// records it.
func ChangeRole(ctx context.Context, tx *ent.Tx, row *ent.Membership, role Role) error {
	if Role(row.Role) == role {
		return nil
	}
	if err := RequireOtherAdmin(ctx, tx, row.UserID, Role(row.Role)); err != nil {
		return err
	}
	before, err := shownMember(ctx, tx, row)
	if err != nil {
		return err
	}
	row, err = tx.Membership.UpdateOneID(row.ID).SetRole(string(role)).SetUpdatedAt(store.Now()).Save(ctx)
	if err != nil {
		return err
	}
	after, err := shownMember(ctx, tx, row)
	audit.Change(ctx, auditMember, row.UserID, before, after)
	return err
}

// shownMember is a member in the audit trail.
func shownMember(ctx context.Context, tx *ent.Tx, row *ent.Membership) (*deploymentsv1.DeploymentUser, error) {
	who, err := tx.User.Query().Where(user.ID(row.UserID)).Only(tenant.System(ctx))
	if err != nil {
		return nil, err
	}
	out := identityOf(who)
	out.OrgRole = deploymentsv1.OrgRole(deploymentsv1.OrgRole_value[row.Role])
	out.Since, out.Active = timestamppb.New(store.Time(row.CreatedAt)), true
	out.LastUpdatedAt = out.Since
	if row.UpdatedAt != nil {
		out.LastUpdatedAt = timestamppb.New(store.Time(*row.UpdatedAt))
	}
	return out, nil
}
