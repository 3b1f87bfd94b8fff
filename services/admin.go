package services

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/tenant"
	entuser "github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/dbcopy"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
)

// MigrationStatus is the state of one migration.
type MigrationStatus struct {
	Version   int64
	Name      string
	AppliedAt time.Time // zero if pending
}

// CreateTokenRequest describes an API token to create.
type CreateTokenRequest struct {
	Name       string
	Scopes     []string      // web-api, agent, workflow-tasks, install-checks
	Role       string        // ORG_ROLE_* or the word after it, in any case; empty means the least useful role for the scopes
	ExpiresIn  time.Duration // 0 means never
	Deployment string        // slug
}

// Token is an API token without its value.
type Token struct {
	ID                                          int64
	Name, Hint                                  string // Hint is the last four characters of the value
	Scopes                                      []string
	Role                                        string
	CreatedAt, ExpiresAt, LastUsedAt, RevokedAt time.Time // zero for events that have not happened or will not
	// Creator is the e-mail address of the user who created it; empty if it belongs to the deployment.
	Creator string
	// EffectiveRole is the role with which it acts now; empty if its creator is not a member any more. Only listed
	// tokens have it.
	EffectiveRole string
}

// openExisting opens an existing database. It does not create a SQLite file, because a mistyped directory would then
// look like an empty database.
func openExisting(ctx context.Context, cfg config.Config) (*store.Store, error) {
	if absent(cfg) {
		return nil, fmt.Errorf("there is no database %s: name its directory with --data, or start the server (palisade serve), which makes one", cfg.SQLitePath())
	}
	return server.OpenStore(ctx, cfg)
}

// absent reports that there is neither a SQLite file nor an unfinished copy into one.
func absent(cfg config.Config) bool {
	if cfg.Database != "" {
		return false
	}
	_, err := os.Stat(cfg.SQLitePath())
	return errors.Is(err, fs.ErrNotExist) && dbcopy.Unfinished(cfg.Data) == nil
}

// withCurrent runs fn on the open database. Its schema must be up to date. Commands that read call withStore;
// commands that write call operate.
func withCurrent(ctx context.Context, cfg config.Config, fn func(*store.Store) error) (err error) {
	st, err := openExisting(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	pending, total, err := pendingMigrations(ctx, st)
	switch {
	case err != nil:
		return err
	case pending == total:
		return fmt.Errorf("the database %s is empty: start the server once with these settings (palisade serve), which creates the first deployment", st.Location())
	case pending > 0:
		return store.ErrPending
	}
	return fn(st)
}

func pendingMigrations(ctx context.Context, st *store.Store) (pending, total int, err error) {
	list, err := st.Migrations(ctx)
	for _, m := range list {
		if m.AppliedAt.IsZero() {
			pending++
		}
	}
	return pending, len(list), err
}

// Migrate applies the pending migrations and returns them.
func Migrate(ctx context.Context, cfg config.Config) (_ []MigrationStatus, err error) {
	st, err := server.OpenStore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	applied, err := st.Migrate(ctx)
	return statuses(applied), err
}

// MigrationStatuses lists all migrations of this program.
func MigrationStatuses(ctx context.Context, cfg config.Config) (_ []MigrationStatus, err error) {
	st, err := openExisting(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	list, err := st.Migrations(ctx)
	return statuses(list), err
}

func statuses(list []store.Migration) []MigrationStatus {
	out := make([]MigrationStatus, len(list))
	for i, m := range list {
		out[i] = MigrationStatus(m)
	}
	return out
}

// CreateToken creates an API token and returns it with its value, which cannot be shown again. Errors name the wrong
// field or the missing deployment.
func CreateToken(ctx context.Context, cfg config.Config, req CreateTokenRequest) (Token, string, error) {
	var made Token
	var value string
	op := operation{method: "token.create", deployments: ofSlug(req.Deployment), request: map[string]any{
		"name": req.Name, "scopes": strings.Join(req.Scopes, ","), "role": req.Role, "expires_in": req.ExpiresIn.String(),
	}}
	err := operate(ctx, cfg, op, func(ctx context.Context, st *store.Store, _ *secret.Keyring) error {
		tokens := access.NewTokens(st)
		deployment, err := tokens.DeploymentBySlug(ctx, req.Deployment)
		if err != nil {
			return err
		}
		spec, err := tokenSpec(req, deployment)
		if err != nil {
			return err
		}
		row, text, err := tokens.Create(ctx, spec)
		if err != nil {
			return err
		}
		made, value = tokenOf(row), text
		return nil
	})
	return made, value, err
}

func tokenSpec(req CreateTokenRequest, deployment *ent.Deployment) (access.TokenSpec, error) {
	spec := access.TokenSpec{DeploymentID: deployment.ID, Name: req.Name}
	for _, scope := range req.Scopes {
		spec.Scopes = append(spec.Scopes, access.Scope(scope))
	}
	spec.Role = access.LeastRole(spec.Scopes)
	if req.Role != "" {
		role, err := access.ParseRole(req.Role)
		if err != nil {
			return access.TokenSpec{}, err
		}
		if err := access.CheckScopeRole(spec.Scopes, role); err != nil {
			return access.TokenSpec{}, err
		}
		spec.Role = role
	}
	if req.ExpiresIn != 0 {
		spec.ExpiresAt = time.Now().Add(req.ExpiresIn)
	}
	return spec, nil
}

// ListTokens returns all API tokens of a deployment, newest first.
func ListTokens(ctx context.Context, cfg config.Config, deployment string) ([]Token, error) {
	var list []Token
	err := apierr.Plain(withStore(ctx, cfg, func(st *store.Store) error {
		tokens := access.NewTokens(st)
		of, err := tokens.DeploymentBySlug(ctx, deployment)
		if err != nil {
			return err
		}
		rows, err := tokens.List(ctx, of.ID)
		if err != nil {
			return err
		}
		emails, roles, err := creators(tenant.NewContext(ctx, of.ID), st, rows)
		for _, row := range rows {
			one := tokenOf(row)
			one.EffectiveRole = string(access.RoleNow(row, roles[row.UserID]))
			if !access.OfDeployment(row) {
				one.Creator = emails[row.UserID]
			}
			list = append(list, one)
		}
		return err
	}))
	return list, err
}

// creators reads the e-mail addresses of the creators of tokens, and their roles in the context's deployment.
func creators(ctx context.Context, st *store.Store, rows []*ent.Token) (emails map[int64]string, roles map[int64]access.Role, err error) {
	var ids []int64
	for _, row := range rows {
		ids = append(ids, row.UserID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	users, err := st.Reader.User.Query().Where(store.OneOf(entuser.FieldID, ids)).All(tenant.System(ctx))
	if err != nil {
		return nil, nil, err
	}
	emails, roles = map[int64]string{}, map[int64]access.Role{}
	for _, u := range users {
		emails[u.ID] = u.Email
	}
	members, err := st.Reader.Membership.Query().Where(store.OneOf(membership.FieldUserID, ids)).All(ctx)
	for _, m := range members {
		roles[m.UserID] = access.Role(m.Role)
	}
	return emails, roles, err
}

// HandOverTokens makes API tokens belong to their deployment, so that they no longer depend on their creators.
func HandOverTokens(ctx context.Context, cfg config.Config, ids []int64) error {
	op := operation{method: "token.hand_over", deployments: ofSlug(cfg.Deployment), request: map[string]any{"ids": fmt.Sprint(ids)}}
	return operate(ctx, cfg, op, func(ctx context.Context, st *store.Store, _ *secret.Keyring) error {
		tokens := access.NewTokens(st)
		of, err := tokens.DeploymentBySlug(ctx, cfg.Deployment)
		if err != nil {
			return err
		}
		return st.Write(tenant.NewContext(ctx, of.ID), func(ctx context.Context, tx *ent.Tx) error {
			_, err := tokens.HandOver(ctx, tx, 0, ids)
			return err
		})
	})
}

// RevokeToken revokes an API token at once. Revoking a revoked token is not an error.
func RevokeToken(ctx context.Context, cfg config.Config, deployment string, id int64) error {
	op := operation{method: "token.revoke", deployments: ofSlug(deployment), request: map[string]any{"id": strconv.FormatInt(id, 10)}}
	return operate(ctx, cfg, op, func(ctx context.Context, st *store.Store, _ *secret.Keyring) error {
		tokens := access.NewTokens(st)
		of, err := tokens.DeploymentBySlug(ctx, deployment)
		if err != nil {
			return err
		}
		return tokens.Revoke(ctx, of.ID, id)
	})
}

func tokenOf(row *ent.Token) Token {
	return Token{
		ID: row.ID, Name: row.Name, Hint: row.Hint, Scopes: row.Scopes, Role: row.Role,
		CreatedAt: store.Time(row.CreatedAt), ExpiresAt: timeOf(row.ExpiresAt),
		LastUsedAt: timeOf(row.LastUsedAt), RevokedAt: timeOf(row.RevokedAt),
	}
}

func timeOf(micros *int64) time.Time {
	if micros == nil {
		return time.Time{}
	}
	return store.Time(*micros)
}

// MintJWT issues a JSON Web Token for a local user, signed by this server and valid for ttl, at most 24 hours.
func MintJWT(ctx context.Context, cfg config.Config, email string, ttl time.Duration) (token string, err error) {
	op := operation{method: "jwt.mint", deployments: ofUser(email), request: map[string]any{"email": email, "ttl": ttl.String()}}
	err = withIssuer(ctx, cfg, op, func(ctx context.Context, issuer *access.Issuer) error {
		token, err = issuer.Mint(ctx, email, ttl)
		return err
	})
	if err != nil {
		return "", err // the audit trail may have refused the entry
	}
	return token, nil
}

// NewConsoleLink makes a one-time link to the console for a local user. It is valid for [ConsoleLinkTTL].
func NewConsoleLink(ctx context.Context, cfg config.Config, email string) (link string, err error) {
	op := operation{method: "console_link.create", deployments: ofUser(email), request: map[string]any{"email": email}}
	err = operate(ctx, cfg, op, func(ctx context.Context, st *store.Store, _ *secret.Keyring) error {
		return st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			code, err := access.NewConsoleLink(ctx, tx, email)
			link = server.ConsoleLinkURL(cfg, code)
			return err
		})
	})
	if err != nil {
		return "", err // the audit trail may have refused the entry
	}
	return link, nil
}

// AdminEmail is the address of the administrator that the first start creates.
const AdminEmail = access.AdminEmail

// ConsoleLinkTTL is how long a one-time link to the console may be used.
const ConsoleLinkTTL = access.ConsoleLinkTTL

// RotateJWTKey creates a new key that signs user tokens from now on, and returns its id. With revoke, the tokens that
// older keys signed are revoked at once.
func RotateJWTKey(ctx context.Context, cfg config.Config, revoke bool) (kid string, err error) {
	op := operation{method: "jwt.rotate", deployments: ofAll, request: map[string]any{"revoke": revoke}}
	err = withIssuer(ctx, cfg, op, func(ctx context.Context, issuer *access.Issuer) error {
		kid, err = issuer.Rotate(ctx, revoke)
		return err
	})
	return kid, err
}

func withIssuer(ctx context.Context, cfg config.Config, op operation, fn func(context.Context, *access.Issuer) error) error {
	return operate(ctx, cfg, op, func(ctx context.Context, st *store.Store, keyring *secret.Keyring) error {
		url, err := server.IssuerURL(ctx, st, cfg)
		if err != nil {
			return err
		}
		return fn(ctx, access.NewIssuer(st, keyring, url))
	})
}
