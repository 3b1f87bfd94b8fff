package access

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/ent/user"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// tokenRow is a token together with its deployment, read in one query.
type tokenRow struct {
	ID             int64            `sql:"id"`
	UserID         int64            `sql:"user_id"`
	Name           string           `sql:"name"`
	Hash           []byte           `sql:"hash"`
	Scopes         []byte           `sql:"scopes"`
	LimitedScopes  []byte           `sql:"limited_scopes"`
	Role           string           `sql:"role"`
	ExpiresAt      stdsql.NullInt64 `sql:"expires_at"`
	LastUsedAt     stdsql.NullInt64 `sql:"last_used_at"`
	RevokedAt      stdsql.NullInt64 `sql:"revoked_at"`
	DeploymentID   int64            `sql:"deployment_id"`
	Slug           string           `sql:"slug"`
	DeploymentName string           `sql:"deployment_name"`
}

// findToken returns nil for an unknown hash. It reads expired and revoked tokens like any other, so that the answer
// takes the same time for all of them.
func findToken(ctx context.Context, st *store.Store, hash []byte) (*tokenRow, error) {
	var rows []*tokenRow
	err := st.Reader.Token.Query().Where(token.Hash(hash)).Modify(func(s *sql.Selector) {
		d := sql.Table(deployment.Table)
		s.Join(d).On(s.C(token.FieldDeploymentID), d.C(deployment.FieldID))
		s.Select(s.C(token.FieldID), s.C(token.FieldUserID), s.C(token.FieldName), s.C(token.FieldHash),
			s.C(token.FieldScopes), s.C(token.FieldLimitedScopes), s.C(token.FieldRole), s.C(token.FieldExpiresAt),
			s.C(token.FieldLastUsedAt), s.C(token.FieldRevokedAt), s.C(token.FieldDeploymentID),
			d.C(deployment.FieldSlug), sql.As(d.C(deployment.FieldName), "deployment_name"))
	}).Scan(tenant.System(ctx), &rows)
	if err != nil {
		return nil, fmt.Errorf("look up the token: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows[0], nil
}

func (r *tokenRow) principal() (*Principal, error) {
	p := &Principal{
		Kind: KindToken, ID: r.ID, UserID: r.UserID, Name: r.Name, Scheme: optionsv1.Scheme_SCHEME_WEB_TOKEN,
		Grants: []Grant{{DeploymentID: r.DeploymentID, Slug: r.Slug, Name: r.DeploymentName, Role: Role(r.Role)}},
	}
	if err := json.Unmarshal(r.Scopes, &p.Scopes); err != nil {
		return nil, fmt.Errorf("scopes of token %d: %w", r.ID, err)
	}
	if len(r.LimitedScopes) > 0 {
		if err := json.Unmarshal(r.LimitedScopes, &p.LimitedScopes); err != nil {
			return nil, fmt.Errorf("limited scopes of token %d: %w", r.ID, err)
		}
	}
	return p, nil
}

// userRow is a user with one of his memberships, whose columns are null when he has none.
type userRow struct {
	ID             int64             `sql:"id"`
	Email          string            `sql:"email"`
	DeploymentID   stdsql.NullInt64  `sql:"deployment_id"`
	Role           stdsql.NullString `sql:"role"`
	Slug           stdsql.NullString `sql:"slug"`
	DeploymentName stdsql.NullString `sql:"deployment_name"`
}

// findUser returns the user whom the predicate picks with all his memberships, in one query, and nil when there is
// none.
func findUser(ctx context.Context, st *store.Store, who predicate.User) (*Principal, error) {
	var rows []userRow
	err := st.Reader.User.Query().Where(who).Modify(func(s *sql.Selector) {
		m, d := sql.Table(membership.Table), sql.Table(deployment.Table)
		s.LeftJoin(m).On(s.C(user.FieldID), m.C(membership.FieldUserID))
		s.LeftJoin(d).On(m.C(membership.FieldDeploymentID), d.C(deployment.FieldID))
		s.Select(s.C(user.FieldID), s.C(user.FieldEmail), m.C(membership.FieldDeploymentID), m.C(membership.FieldRole),
			d.C(deployment.FieldSlug), sql.As(d.C(deployment.FieldName), "deployment_name"))
		s.OrderBy(m.C(membership.FieldDeploymentID))
	}).Scan(tenant.System(ctx), &rows)
	if err != nil {
		return nil, fmt.Errorf("look up the user: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	p := &Principal{
		Kind: KindUser, ID: rows[0].ID, UserID: rows[0].ID, Name: rows[0].Email, Scheme: optionsv1.Scheme_SCHEME_JWT,
	}
	for _, r := range rows {
		if r.Slug.Valid {
			p.Grants = append(p.Grants, Grant{
				DeploymentID: r.DeploymentID.Int64, Slug: r.Slug.String, Name: r.DeploymentName.String, Role: Role(r.Role.String),
			})
		}
	}
	return p, nil
}
