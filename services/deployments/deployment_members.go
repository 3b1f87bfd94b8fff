package deployments

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/tenant"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/deployments/details"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// auditUser is the object kind of members in the audit trail.
const auditUser = "deployment_user"

// AddDeploymentUser adds the caller to the deployment. The access rule allows every user; the invitation is checked
// here. Without one, the caller gets NOT_FOUND.
func (s *Deployment) AddDeploymentUser(ctx context.Context, r *deploymentsv1.AddDeploymentUserRequest) (*deploymentsv1.AddDeploymentUserResponse, error) {
	principal, _ := access.FromContext(ctx)
	if r.GetDeploymentId() == 0 {
		return nil, errNoDeployment()
	}
	var out *deploymentsv1.DeploymentDetails
	err := s.store.Write(tenant.NewContext(ctx, r.GetDeploymentId()), func(ctx context.Context, tx *ent.Tx) error {
		row, err := lock(ctx, s.store, tx)
		if err != nil {
			return err
		}
		belongs, err := tx.Membership.Query().Where(membership.UserID(principal.UserID)).Exist(ctx)
		if err != nil {
			return err
		}
		if !belongs {
			if err := acceptInvitation(ctx, tx, row, principal); err != nil {
				return err
			}
		}
		out, err = details.Of(row)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.AddDeploymentUserResponse{Deployment: out}, nil
}

// acceptInvitation accepts a user's invitation. A user's name is the lower-case e-mail address from the issuer of the
// credential.
func acceptInvitation(ctx context.Context, tx *ent.Tx, row *ent.Deployment, who *access.Principal) error {
	taken, err := access.TakeInvitation(ctx, tx, row.ID, who.Name)
	if err != nil {
		return err
	}
	if !taken {
		return errNoDeployment()
	}
	if err := access.Join(ctx, tx, row.ID, who.UserID, access.Role(row.DefaultRole), false); err != nil {
		return err
	}
	after, err := member(ctx, tx.Client(), who.UserID)
	if err != nil {
		return err
	}
	audit.Change(ctx, auditUser, who.UserID, nil, after.convert())
	return nil
}

// PatchDeploymentUser changes a member's role.
func (s *Deployment) PatchDeploymentUser(ctx context.Context, r *deploymentsv1.PatchDeploymentUserRequest) (*deploymentsv1.PatchDeploymentUserResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		_, row, err := s.lockMember(ctx, tx, r.GetUserId())
		if err != nil {
			return err
		}
		role := r.GetNewRole().String()
		if role == row.Role {
			return nil
		}
		if err := access.RequireOtherAdmin(ctx, tx, row.UserID, access.Role(row.Role)); err != nil {
			return err
		}
		if err := tx.Membership.UpdateOneID(row.ID).SetRole(role).SetUpdatedAt(store.Now()).Exec(ctx); err != nil {
			return err
		}
		after, err := member(ctx, tx.Client(), row.UserID)
		if err != nil {
			return err
		}
		audit.Change(ctx, auditUser, row.UserID, row.convert(), after.convert())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.PatchDeploymentUserResponse{}, nil
}

// RemoveDeploymentUser removes a member and their team memberships, and ends their sessions of the console. Their API
// tokens are not revoked (contract facts, 2.1): they do nothing until the user is a member again, or an administrator
// hands them over to the deployment.
func (s *Deployment) RemoveDeploymentUser(ctx context.Context, r *deploymentsv1.RemoveDeploymentUserRequest) (*deploymentsv1.RemoveDeploymentUserResponse, error) {
	var out *deploymentsv1.DeploymentDetails
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		locked, row, err := s.lockMember(ctx, tx, r.GetUserId())
		if err != nil {
			return err
		}
		if err := access.RequireOtherAdmin(ctx, tx, row.UserID, access.Role(row.Role)); err != nil {
			return err
		}
		if err := access.EndMembership(ctx, tx, row.ID, row.UserID); err != nil {
			return err
		}
		audit.Change(ctx, auditUser, row.UserID, row.convert(), nil)
		out, err = details.Of(locked)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.RemoveDeploymentUserResponse{Deployment: out}, nil
}

// lockMember reads a member and locks the deployment. If two administrators demote each other concurrently, the second
// change must see the first.
func (s *Deployment) lockMember(ctx context.Context, tx *ent.Tx, userID int64) (*ent.Deployment, *memberRow, error) {
	locked, err := lock(ctx, s.store, tx)
	if err != nil {
		return nil, nil, err
	}
	row, err := member(ctx, tx.Client(), userID)
	return locked, row, err
}
