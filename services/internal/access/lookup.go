package access

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/signingkey"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/ent/user"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// tokenRow is a token, its deployment and the membership of its creator, read in one query.
type tokenRow struct {
	ID             int64
	UserID         int64
	Name           string
	Hash           []byte
	Scopes         []byte
	LimitedScopes  []byte
	Role           string
	ExpiresAt      stdsql.NullInt64
	LastUsedAt     stdsql.NullInt64
	RevokedAt      stdsql.NullInt64
	DeploymentID   int64
	Slug           string
	DeploymentName string
	HasTeams       bool
	ProjectID      stdsql.NullInt64
	MigratedAt     stdsql.NullInt64 // of the deployment's policies
	HandedOverAt   stdsql.NullInt64
	CreatorRole    stdsql.NullString // null when the creator is not a member of the deployment
}

// tokenSQL is a constant, so that both drivers keep it prepared on each connection: building the same query with ent
// took four times as long as executing it. Like all look-ups of credentials it searches all deployments; the hash is
// the condition.
const tokenSQL = "SELECT t." + token.FieldID + ", t." + token.FieldUserID + ", t." + token.FieldName + ", t." + token.FieldHash +
	", t." + token.FieldScopes + ", t." + token.FieldLimitedScopes + ", t." + token.FieldRole + ", t." + token.FieldExpiresAt +
	", t." + token.FieldLastUsedAt + ", t." + token.FieldRevokedAt + ", t." + token.FieldDeploymentID +
	", d." + deployment.FieldSlug + ", d." + deployment.FieldName +
	", EXISTS (SELECT 1 FROM " + team.Table + " WHERE " + team.FieldDeploymentID + " = t." + token.FieldDeploymentID + "), t." + token.FieldProjectID +
	", d." + deployment.FieldPoliciesMigratedAt + ", t." + token.FieldHandedOverAt + ", m." + membership.FieldRole +
	" FROM " + token.Table + " t JOIN " + deployment.Table + " d ON d." + deployment.FieldID + " = t." + token.FieldDeploymentID +
	" LEFT JOIN " + membership.Table + " m ON m." + membership.FieldDeploymentID + " = t." + token.FieldDeploymentID +
	" AND m." + membership.FieldUserID + " = t." + token.FieldUserID +
	" WHERE t." + token.FieldHash + " = $1"

// findToken returns nil for an unknown hash. It reads expired and revoked tokens too, so that the response time does
// not reveal their state.
func findToken(ctx context.Context, st *store.Store, hash []byte) (*tokenRow, error) {
	row := new(tokenRow)
	err := st.ReadRow(ctx, tokenSQL, []any{hash}, &row.ID, &row.UserID, &row.Name, &row.Hash, &row.Scopes, &row.LimitedScopes,
		&row.Role, &row.ExpiresAt, &row.LastUsedAt, &row.RevokedAt, &row.DeploymentID, &row.Slug, &row.DeploymentName, &row.HasTeams, &row.ProjectID,
		&row.MigratedAt, &row.HandedOverAt, &row.CreatorRole)
	switch {
	case errors.Is(err, stdsql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up the token: %w", err)
	}
	return row, nil
}

// authority is what the row says about whose authority the token has.
func (r *tokenRow) authority() authority {
	return authority{
		role: Role(r.Role), creator: Role(r.CreatorRole.String),
		ofDeployment: belongsToDeployment(r.UserID, r.HandedOverAt.Valid, r.ProjectID.Valid),
	}
}

func (r *tokenRow) principal() (*Principal, error) {
	may := r.authority()
	p := &Principal{
		Kind: KindToken, ID: r.ID, UserID: r.UserID, Name: r.Name, Scheme: optionsv1.Scheme_SCHEME_WEB_TOKEN,
		Grants: []Grant{{
			DeploymentID: r.DeploymentID, Slug: r.Slug, Name: r.DeploymentName, Role: may.now(), PoliciesMigrated: r.MigratedAt.Valid,
		}},
		WithoutTeams: !r.HasTeams, ProjectID: r.ProjectID.Int64,
		OfDeployment: may.ofDeployment, ByAdmin: may.ofDeployment || may.creator == RoleAdmin, lessened: may.now() != may.role,
	}
	var err error
	if p.Scopes, err = readScopes(r.Scopes); err != nil {
		return nil, fmt.Errorf("scopes of token %d: %w", r.ID, err)
	}
	if len(r.LimitedScopes) > 0 {
		if err := json.Unmarshal(r.LimitedScopes, &p.LimitedScopes); err != nil {
			return nil, fmt.Errorf("limited scopes of token %d: %w", r.ID, err)
		}
	}
	return p, nil
}

// readScopes reads a list of scopes. It recognises the lists of nearly all tokens without parsing, in the spelling of
// both databases.
func readScopes(stored []byte) (scopes []Scope, err error) {
	switch string(stored) {
	case `["web-api"]`:
		return []Scope{ScopeWebAPI}, nil
	case `["web-api","agent"]`, `["web-api", "agent"]`:
		return []Scope{ScopeWebAPI, ScopeAgent}, nil
	}
	err = json.Unmarshal(stored, &scopes)
	return scopes, err
}

// userRow is a user with one of their memberships. Its columns are null when the user has none.
type userRow struct {
	ID             int64             `sql:"id"`
	Email          string            `sql:"email"`
	FullName       string            `sql:"full_name"`
	ClaimsAt       stdsql.NullInt64  `sql:"claims_at"`
	DeploymentID   stdsql.NullInt64  `sql:"deployment_id"`
	Role           stdsql.NullString `sql:"role"`
	Slug           stdsql.NullString `sql:"slug"`
	DeploymentName stdsql.NullString `sql:"deployment_name"`
	MigratedAt     stdsql.NullInt64  `sql:"policies_migrated_at"`
}

// signedBy is the condition that the store still has the key with this id. Every node caches public keys for a while.
// This condition makes a revoked key useless at once, without another query.
func signedBy(keyID string) predicate.User {
	return func(s *sql.Selector) {
		k := sql.Table(signingkey.Table)
		s.Where(sql.Exists(sql.Select(k.C(signingkey.FieldID)).From(k).Where(sql.EQ(k.C(signingkey.FieldKid), keyID))))
	}
}

// findUser returns the user that the predicate selects with all memberships, in one query, and nil when there is none.
func findUser(ctx context.Context, st *store.Store, who predicate.User) (*Principal, error) {
	var rows []userRow
	err := st.Reader.User.Query().Where(who).Modify(func(s *sql.Selector) {
		m, d := sql.Table(membership.Table), sql.Table(deployment.Table)
		s.LeftJoin(m).On(s.C(user.FieldID), m.C(membership.FieldUserID))
		s.LeftJoin(d).On(m.C(membership.FieldDeploymentID), d.C(deployment.FieldID))
		s.Select(s.C(user.FieldID), s.C(user.FieldEmail), sql.As(s.C(user.FieldName), "full_name"), s.C(user.FieldClaimsAt), m.C(membership.FieldDeploymentID), m.C(membership.FieldRole),
			d.C(deployment.FieldSlug), sql.As(d.C(deployment.FieldName), "deployment_name"), d.C(deployment.FieldPoliciesMigratedAt))
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
		fullName: rows[0].FullName, claimsAt: rows[0].ClaimsAt.Int64,
	}
	for _, r := range rows {
		if r.Slug.Valid {
			p.Grants = append(p.Grants, Grant{
				DeploymentID: r.DeploymentID.Int64, Slug: r.Slug.String, Name: r.DeploymentName.String, Role: Role(r.Role.String),
				PoliciesMigrated: r.MigratedAt.Valid,
			})
		}
	}
	return p, nil
}
