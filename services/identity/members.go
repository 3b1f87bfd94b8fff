package identity

import (
	"context"

	"github.com/palisade/palisade/ent"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
)

// Members is the service group "members".
type Members struct {
	identityv1.UnimplementedMembersServiceServer
	store  *store.Store
	tokens *access.Tokens
}

// NewMembers removes and demotes the members of the store's deployments.
func NewMembers(st *store.Store, tokens *access.Tokens) *Members {
	return &Members{store: st, tokens: tokens}
}

// RemoveMember removes a member and decides about their tokens.
func (s *Members) RemoveMember(ctx context.Context, r *identityv1.RemoveMemberRequest) (*identityv1.RemoveMemberResponse, error) {
	list, err := s.change(ctx, r.GetUserId(), "", r.GetTokens(), access.RemoveMember)
	return &identityv1.RemoveMemberResponse{Tokens: list}, err
}

// ChangeMemberRole changes a member's role and decides about their tokens.
func (s *Members) ChangeMemberRole(ctx context.Context, r *identityv1.ChangeMemberRoleRequest) (*identityv1.ChangeMemberRoleResponse, error) {
	role := access.Role(r.GetRole())
	list, err := s.change(ctx, r.GetUserId(), role, r.GetTokens(), func(ctx context.Context, tx *ent.Tx, row *ent.Membership) error {
		return access.ChangeRole(ctx, tx, row, role)
	})
	return &identityv1.ChangeMemberRoleResponse{Tokens: list}, err
}

// change changes a membership and decides about the tokens of the member, whose new role is role; empty for none.
func (s *Members) change(ctx context.Context, userID int64, role access.Role, tokens *identityv1.TokenDecisions,
	membership func(context.Context, *ent.Tx, *ent.Membership) error,
) ([]*identityv1.DecidedToken, error) {
	caller, _ := access.FromContext(ctx)
	var decided []access.Decided
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := access.LockMember(ctx, s.store, tx, userID)
		if err != nil {
			return err
		}
		if err := membership(ctx, tx, row); err != nil {
			return err
		}
		decided, err = s.tokens.Decide(ctx, tx, caller.UserID, userID, access.Decisions{
			Others: access.Decision(tokens.GetOthers()), End: tokens.GetEnd(), Keep: tokens.GetKeep(),
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	list := make([]*identityv1.DecidedToken, len(decided))
	for i, one := range decided {
		list[i] = &identityv1.DecidedToken{Token: withRole(one.Token, role), Decision: identityv1.TokenDecision(one.Decision)}
		if one.Decision == access.End {
			list[i].Token = convertToken(one.Token)
		}
	}
	return list, nil
}
