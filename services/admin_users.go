package services

import (
	"context"
	"errors"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/tenant"
	entuser "github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// User is a user of the server with their role in one deployment.
type User struct {
	ID              int64
	Email, Name     string
	Issuer, Subject string // empty for a local user
	Role            string // empty for a user who is not a member
}

// ListUsers returns all users of the server with their roles in a deployment.
func ListUsers(ctx context.Context, cfg config.Config, deployment string) ([]User, error) {
	var list []User
	err := apierr.Plain(withStore(ctx, cfg, func(st *store.Store) error {
		of, err := access.NewTokens(st).DeploymentBySlug(ctx, deployment)
		if err != nil {
			return err
		}
		members, err := st.Reader.Membership.Query().Select(membership.FieldUserID, membership.FieldRole).All(tenant.NewContext(ctx, of.ID))
		if err != nil {
			return err
		}
		roles := make(map[int64]string, len(members))
		for _, m := range members {
			roles[m.UserID] = m.Role
		}
		rows, err := st.Reader.User.Query().Order(entuser.ByID()).All(tenant.System(ctx))
		for _, row := range rows {
			list = append(list, userOf(row, roles[row.ID]))
		}
		return err
	}))
	return list, err
}

// LinkUser lets the user with this e-mail address sign in as a subject of the configured OpenID Connect issuer.
func LinkUser(ctx context.Context, cfg config.Config, email, subject string) (User, error) {
	if cfg.OIDCIssuer == "" {
		return User{}, errors.New("oidc-issuer is not set: name the issuer of the subject (--oidc-issuer, as on the server)")
	}
	request := map[string]any{"email": email, "issuer": cfg.OIDCIssuer, "subject": subject}
	return changeUser(ctx, cfg, "user.link", request, func(ctx context.Context, tx *ent.Tx, fallback int64) (*ent.User, error) {
		return access.Link(ctx, tx, email, cfg.OIDCIssuer, subject, fallback)
	})
}

// UnlinkUser removes the issuer's identity from the user with this e-mail address.
func UnlinkUser(ctx context.Context, cfg config.Config, email string) (User, error) {
	return changeUser(ctx, cfg, "user.unlink", map[string]any{"email": email}, func(ctx context.Context, tx *ent.Tx, fallback int64) (*ent.User, error) {
		return access.Unlink(ctx, tx, email, fallback)
	})
}

// changeUser changes a user and writes the audit trail. The actor is the operator of the command. The configured
// deployment gets the entry if the user has none.
func changeUser(ctx context.Context, cfg config.Config, method string, request map[string]any, change func(context.Context, *ent.Tx, int64) (*ent.User, error)) (User, error) {
	var changed User
	op := operation{method: method, deployments: ofSlug(cfg.Deployment), request: request}
	err := operate(ctx, cfg, op, func(ctx context.Context, st *store.Store, _ *secret.Keyring) error {
		of, err := access.NewTokens(st).DeploymentBySlug(ctx, cfg.Deployment)
		if err != nil {
			return err
		}
		return st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			row, err := change(ctx, tx, of.ID)
			if err == nil {
				changed = userOf(row, "")
			}
			return err
		})
	})
	return changed, err
}

func userOf(row *ent.User, role string) User {
	out := User{ID: row.ID, Email: row.Email, Name: row.Name, Role: role}
	if row.Subject != nil && row.Issuer != nil {
		out.Issuer, out.Subject = *row.Issuer, *row.Subject
	}
	return out
}
