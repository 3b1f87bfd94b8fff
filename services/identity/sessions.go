package identity

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/session"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// Sessions implements SessionsService.
type Sessions struct {
	identityv1.UnimplementedSessionsServiceServer
	store    *store.Store
	sessions *access.Sessions
}

// NewSessions returns the service group.
func NewSessions(st *store.Store, sessions *access.Sessions) *Sessions {
	return &Sessions{store: st, sessions: sessions}
}

// ListSessions lists the caller's sessions.
func (s *Sessions) ListSessions(ctx context.Context, _ *identityv1.ListSessionsRequest) (*identityv1.ListSessionsResponse, error) {
	caller, _ := access.FromContext(ctx)
	list, err := s.list(ctx, caller.UserID)
	return &identityv1.ListSessionsResponse{Sessions: list}, err
}

// RevokeSession revokes one of the caller's sessions.
func (s *Sessions) RevokeSession(ctx context.Context, r *identityv1.RevokeSessionRequest) (*identityv1.RevokeSessionResponse, error) {
	caller, _ := access.FromContext(ctx)
	revoked, err := s.revoke(ctx, caller.UserID, session.ID(r.GetSessionId()))
	if err == nil && revoked == 0 {
		err = errNoSession(r.GetSessionId())
	}
	return &identityv1.RevokeSessionResponse{SessionId: r.GetSessionId()}, err
}

// RevokeOtherSessions revokes the caller's sessions but the calling one.
func (s *Sessions) RevokeOtherSessions(ctx context.Context, _ *identityv1.RevokeOtherSessionsRequest) (*identityv1.RevokeOtherSessionsResponse, error) {
	caller, _ := access.FromContext(ctx)
	revoked, err := s.revoke(ctx, caller.UserID, session.IDNEQ(caller.SessionID))
	return &identityv1.RevokeOtherSessionsResponse{RevokedCount: int64(revoked)}, err
}

// ListMemberSessions lists a member's sessions.
func (s *Sessions) ListMemberSessions(ctx context.Context, r *identityv1.ListMemberSessionsRequest) (*identityv1.ListMemberSessionsResponse, error) {
	if err := requireMember(ctx, s.store.Reader, r.GetUserId()); err != nil {
		return nil, err
	}
	list, err := s.list(ctx, r.GetUserId())
	return &identityv1.ListMemberSessionsResponse{Sessions: list}, err
}

// RevokeMemberSessions revokes one or all of a member's sessions.
func (s *Sessions) RevokeMemberSessions(ctx context.Context, r *identityv1.RevokeMemberSessionsRequest) (*identityv1.RevokeMemberSessionsResponse, error) {
	if err := requireMember(ctx, s.store.Reader, r.GetUserId()); err != nil {
		return nil, err
	}
	var which []predicate.Session
	if r.SessionId != nil {
		which = append(which, session.ID(r.GetSessionId()))
	}
	revoked, err := s.revoke(ctx, r.GetUserId(), which...)
	if err == nil && revoked == 0 && r.SessionId != nil {
		err = errNoSession(r.GetSessionId())
	}
	return &identityv1.RevokeMemberSessionsResponse{RevokedCount: int64(revoked)}, err
}

func (s *Sessions) list(ctx context.Context, userID int64) ([]*identityv1.Session, error) {
	caller, _ := access.FromContext(ctx)
	rows, err := s.sessions.List(ctx, userID)
	list := make([]*identityv1.Session, len(rows))
	for i, row := range rows {
		list[i] = s.sessions.Shown(row, caller.SessionID)
	}
	return list, err
}

func (s *Sessions) revoke(ctx context.Context, userID int64, which ...predicate.Session) (revoked int, err error) {
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		revoked, err = s.sessions.Revoke(ctx, tx, userID, which...)
		return err
	})
	return revoked, err
}

// requireMember refuses users outside of the deployment like users that do not exist.
func requireMember(ctx context.Context, db *ent.Client, userID int64) error {
	member, err := db.Membership.Query().Where(membership.UserID(userID)).Exist(ctx)
	if err == nil && !member {
		return apierr.NotFound("user %d not found", userID)
	}
	return err
}

func errNoSession(id int64) error { return apierr.NotFound("session %d not found", id) }
