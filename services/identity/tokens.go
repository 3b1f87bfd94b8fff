package identity

import (
	"context"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/token"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// auditToken is the object kind of tokens in the audit trail.
	auditToken = "token"
	// defaultTokens is the default page size.
	defaultTokens = 100
)

// Tokens is the service group "tokens".
type Tokens struct {
	identityv1.UnimplementedTokensServiceServer
	store  *store.Store
	tokens *access.Tokens
}

// NewTokens serves the API tokens of the store.
func NewTokens(st *store.Store, tokens *access.Tokens) *Tokens {
	return &Tokens{store: st, tokens: tokens}
}

// CreateToken creates a token with at most the caller's permissions.
func (s *Tokens) CreateToken(ctx context.Context, r *identityv1.CreateTokenRequest) (*identityv1.CreateTokenResponse, error) {
	caller, _ := access.FromContext(ctx)
	grant, _ := access.GrantFromContext(ctx)
	spec := access.TokenSpec{
		DeploymentID: grant.DeploymentID, Name: r.GetName(), LimitedScopes: r.GetLimitedScopes(), Role: access.Role(r.GetRole()),
	}
	for _, scope := range r.GetScopes() {
		spec.Scopes = append(spec.Scopes, access.Scope(scope))
	}
	if r.ExpiresAt != nil {
		if err := r.GetExpiresAt().CheckValid(); err != nil {
			return nil, apierr.InvalidArgument("expiresAt", "expiresAt must be a time from year 1 to 9999")
		}
		// Stored times have microsecond precision.
		spec.ExpiresAt = r.GetExpiresAt().AsTime().Truncate(time.Microsecond)
	}
	response := &identityv1.CreateTokenResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, value, err := s.tokens.CreateAs(ctx, tx, caller, grant.Role, spec)
		if err != nil {
			return err
		}
		response.Token, response.Value = withRole(row, grant.Role), value
		audit.Change(ctx, auditToken, row.ID, nil, convertToken(row))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// ListTokens lists the tokens that are not deleted, newest first.
func (s *Tokens) ListTokens(ctx context.Context, r *identityv1.ListTokensRequest) (*identityv1.ListTokensResponse, error) {
	list, err := page.DigestOf("tokens", &identityv1.ListTokensRequest{DeploymentId: r.GetDeploymentId(), CreatedBy: r.GetCreatedBy()})
	if err != nil {
		return nil, err
	}
	after, ok, err := page.Decode(list, r.GetCursor())
	if err != nil {
		return nil, err
	}
	limit := defaultTokens
	if r.Limit != nil {
		limit = int(r.GetLimit())
	}
	query := s.store.Reader.Token.Query().Where(token.RevokedAtIsNil()).
		Order(token.ByCreatedAt(sql.OrderDesc()), token.ByID(sql.OrderDesc())).Limit(limit + 1)
	if ok {
		query.Where(token.CreatedAtLTE(after.Order),
			token.Or(token.CreatedAtLT(after.Order), token.IDLT(after.ID)))
	}
	if id := r.GetCreatedBy(); id != 0 {
		query.Where(token.UserID(id))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	roles, err := creatorRoles(ctx, s.store.Reader, rows)
	if err != nil {
		return nil, err
	}
	response := &identityv1.ListTokensResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		response.Cursor = page.Encode(list, page.Key{Order: last.CreatedAt, ID: last.ID})
	}
	for _, row := range rows {
		response.Tokens = append(response.Tokens, withRole(row, roles[row.UserID]))
	}
	return response, nil
}

// creatorRoles reads the present roles of the creators of tokens, by user. It has none for those who are not members.
func creatorRoles(ctx context.Context, db *ent.Client, rows []*ent.Token) (map[int64]access.Role, error) {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.UserID
	}
	slices.Sort(ids)
	members, err := db.Membership.Query().Where(store.OneOf(membership.FieldUserID, slices.Compact(ids))).
		Select(membership.FieldUserID, membership.FieldRole).All(ctx)
	if err != nil {
		return nil, err
	}
	roles := make(map[int64]access.Role, len(members))
	for _, m := range members {
		roles[m.UserID] = access.Role(m.Role)
	}
	return roles, nil
}

// HandOverTokens makes tokens belong to the deployment.
func (s *Tokens) HandOverTokens(ctx context.Context, r *identityv1.HandOverTokensRequest) (*identityv1.HandOverTokensResponse, error) {
	caller, _ := access.FromContext(ctx)
	var rows []*ent.Token
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		rows, err = s.tokens.HandOver(ctx, tx, caller.UserID, r.GetTokenIds())
		return err
	})
	if err != nil {
		return nil, err
	}
	response := &identityv1.HandOverTokensResponse{Tokens: make([]*identityv1.Token, len(rows))}
	for i, row := range rows {
		response.Tokens[i] = withRole(row, "")
	}
	return response, nil
}

// DeleteToken deletes one token, which may be the caller's own, and the tokens created with it.
func (s *Tokens) DeleteToken(ctx context.Context, r *identityv1.DeleteTokenRequest) (*identityv1.DeleteTokenResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		rows, err := s.tokens.Lock(ctx, tx, token.ID(r.GetTokenId()))
		if err == nil && len(rows) == 0 {
			err = apierr.NotFound("token %d not found", r.GetTokenId())
		}
		if err != nil {
			return err
		}
		_, err = revoke(ctx, tx, s.tokens, rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &identityv1.DeleteTokenResponse{TokenId: r.GetTokenId()}, nil
}

// DeleteTokens deletes the tokens of a purpose and role (contract facts, section 6, Tokens).
func (s *Tokens) DeleteTokens(ctx context.Context, r *identityv1.DeleteTokensRequest) (*identityv1.DeleteTokensResponse, error) {
	purpose, role := r.GetPurpose(), r.GetRoleFilter()
	switch {
	case purpose != identityv1.TokenPurpose_TOKEN_PURPOSE_CLI && purpose != identityv1.TokenPurpose_TOKEN_PURPOSE_API:
		return nil, apierr.InvalidArgument("purpose", "purpose must be TOKEN_PURPOSE_CLI or TOKEN_PURPOSE_API, got %s", shown(purpose))
	case purpose == identityv1.TokenPurpose_TOKEN_PURPOSE_API && role == 0:
		return nil, apierr.InvalidArgument("roleFilter", "roleFilter is required for TOKEN_PURPOSE_API: one of %s", apierr.EnumWords(role.Descriptor()))
	case purpose == identityv1.TokenPurpose_TOKEN_PURPOSE_CLI && role != 0:
		return nil, apierr.InvalidArgument("roleFilter", "roleFilter must be left out for TOKEN_PURPOSE_CLI, got %v", role)
	}
	deleted := 0
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		rows, err := s.tokens.Lock(ctx, tx)
		if err != nil {
			return err
		}
		rows = slices.DeleteFunc(rows, func(row *ent.Token) bool {
			return purposeOf(row) != purpose || role != 0 && filterOf(row) != role
		})
		deleted, err = revoke(ctx, tx, s.tokens, rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &identityv1.DeleteTokensResponse{DeletedCount: int64(deleted)}, nil
}

// revoke revokes tokens and the tokens created with them, and returns their number. The rows stay: the audit trail and
// the history of findings refer to them.
func revoke(ctx context.Context, tx *ent.Tx, tokens *access.Tokens, rows []*ent.Token) (int, error) {
	ended, err := tokens.RevokeAll(ctx, tx, rows)
	for _, row := range ended {
		audit.Change(ctx, auditToken, row.ID, convertToken(row), nil)
	}
	return len(ended), err
}

// purposeOf maps a token's scopes to the contract's purposes.
func purposeOf(row *ent.Token) identityv1.TokenPurpose {
	if slices.Contains(row.Scopes, string(access.ScopeWebAPI)) {
		return identityv1.TokenPurpose_TOKEN_PURPOSE_API
	}
	return identityv1.TokenPurpose_TOKEN_PURPOSE_CLI
}

// filterOf is the contract's role by which DeleteTokens selects a token.
func filterOf(row *ent.Token) identityv1.TokenRole {
	if purposeOf(row) == identityv1.TokenPurpose_TOKEN_PURPOSE_CLI {
		return identityv1.TokenRole_TOKEN_ROLE_AGENT_CLI
	}
	switch access.Role(row.Role) {
	case access.RoleAdmin:
		return identityv1.TokenRole_TOKEN_ROLE_WEBAPI
	case access.RoleReadOnly:
		return identityv1.TokenRole_TOKEN_ROLE_READ_ONLY
	default:
		return identityv1.TokenRole_TOKEN_ROLE_MEMBER
	}
}

// withRole is a token with the role that it acts with. creator is the present role of its creator; empty for none.
func withRole(row *ent.Token, creator access.Role) *identityv1.Token {
	out := convertToken(row)
	out.EffectiveRole = string(access.RoleNow(row, creator))
	return out
}

// convertToken is a token without the role that it acts with, as in the audit trail.
func convertToken(row *ent.Token) *identityv1.Token {
	out := &identityv1.Token{
		Id: row.ID, Name: row.Name, Hint: row.Hint, Scopes: row.Scopes, LimitedScopes: row.LimitedScopes, Role: row.Role,
		Purpose: purposeOf(row), CreatedBy: row.UserID, CreatedAt: timestamppb.New(store.Time(row.CreatedAt)),
	}
	if row.ExpiresAt != nil {
		out.ExpiresAt = timestamppb.New(store.Time(*row.ExpiresAt))
	}
	if row.HandedOverAt != nil {
		out.HandedOverAt = timestamppb.New(store.Time(*row.HandedOverAt))
	}
	if row.ParentID != nil {
		out.ParentId = *row.ParentID
	}
	if row.LastUsedAt != nil {
		out.LastUsedAt = timestamppb.New(store.Time(*row.LastUsedAt))
	}
	return out
}

// shown formats a purpose for error texts.
func shown(purpose identityv1.TokenPurpose) string {
	if purpose == 0 {
		return "none"
	}
	return purpose.String()
}
