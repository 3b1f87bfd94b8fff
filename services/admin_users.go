package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// TokenDecisions say what happens to the API tokens that a user created and that do not belong to the deployment, when
// the user is removed or gets another role.
type TokenDecisions struct {
	// Others is end, keep or leave, for the tokens that are not listed. Empty means that there may be none.
	Others string
	// End and Keep list ids.
	End, Keep []int64
}

// DecidedToken is a token of a user who was removed or got another role.
type DecidedToken struct {
	Token
	// Decision is end, keep or leave.
	Decision string
}

// UndecidedTokensError lists the tokens that a command must decide about.
type UndecidedTokensError struct{ Tokens []Token }

// Error says what is missing.
func (e *UndecidedTokensError) Error() string {
	return fmt.Sprintf("the user created %d API tokens: say what happens to them", len(e.Tokens))
}

// decisions are the words of commands.
var decisions = map[string]access.Decision{"leave": access.Leave, "end": access.End, "keep": access.Keep}

func (d TokenDecisions) parse() (out access.Decisions, err error) {
	out.End, out.Keep = d.End, d.Keep
	if d.Others == "" {
		return out, nil
	}
	var known bool
	if out.Others, known = decisions[d.Others]; !known {
		err = fmt.Errorf("got %q for the tokens, want end, keep or leave", d.Others)
	}
	return out, err
}

func (d TokenDecisions) request(email string) map[string]any {
	return map[string]any{"email": email, "tokens": d.Others, "end": fmt.Sprint(d.End), "keep": fmt.Sprint(d.Keep)}
}

// RemoveUser removes the user with this e-mail address from a deployment.
func RemoveUser(ctx context.Context, cfg config.Config, email string, tokens TokenDecisions) ([]DecidedToken, error) {
	op := operation{method: "user.remove", deployments: ofSlug(cfg.Deployment), request: tokens.request(email)}
	return changeMember(ctx, cfg, op, email, tokens, access.RemoveMember)
}

// ChangeUserRole changes the role of the user with this e-mail address in a deployment.
func ChangeUserRole(ctx context.Context, cfg config.Config, email, role string, tokens TokenDecisions) ([]DecidedToken, error) {
	parsed, err := access.ParseRole(role)
	if err != nil {
		return nil, err
	}
	request := tokens.request(email)
	request["role"] = string(parsed)
	op := operation{method: "user.role", deployments: ofSlug(cfg.Deployment), request: request}
	return changeMember(ctx, cfg, op, email, tokens, func(ctx context.Context, tx *ent.Tx, row *ent.Membership) error {
		return access.ChangeRole(ctx, tx, row, parsed)
	})
}

// changeMember changes a membership and decides about the member's tokens.
func changeMember(ctx context.Context, cfg config.Config, op operation, email string, tokens TokenDecisions,
	change func(context.Context, *ent.Tx, *ent.Membership) error,
) (list []DecidedToken, err error) {
	decide, err := tokens.parse()
	if err != nil {
		return nil, err
	}
	err = operate(ctx, cfg, op, func(ctx context.Context, st *store.Store, _ *secret.Keyring) error {
		of, err := access.NewTokens(st).DeploymentBySlug(ctx, cfg.Deployment)
		if err != nil {
			return err
		}
		return st.Write(tenant.NewContext(ctx, of.ID), func(ctx context.Context, tx *ent.Tx) error {
			row, err := memberByEmail(ctx, st, tx, email)
			if err != nil {
				return err
			}
			if err := change(ctx, tx, row); err != nil {
				return err
			}
			list, err = decideTokens(ctx, st, tx, row.UserID, decide, tokens.Others != "")
			return err
		})
	})
	return list, err
}

// decideTokens decides about the tokens of a user. Without a decision about others, there may be none.
func decideTokens(ctx context.Context, st *store.Store, tx *ent.Tx, userID int64, decide access.Decisions, about bool) ([]DecidedToken, error) {
	decided, err := access.NewTokens(st).Decide(ctx, tx, 0, userID, decide)
	if err != nil {
		return nil, err
	}
	var list []DecidedToken
	undecided := &UndecidedTokensError{}
	for _, one := range decided {
		token := tokenOf(one.Token)
		if one.Decision == access.Leave && !about {
			undecided.Tokens = append(undecided.Tokens, token)
		}
		for word, decision := range decisions {
			if decision == one.Decision {
				list = append(list, DecidedToken{Token: token, Decision: word})
			}
		}
	}
	if len(undecided.Tokens) > 0 {
		return nil, undecided
	}
	return list, nil
}

// memberByEmail finds a member of the context's deployment and locks the deployment.
func memberByEmail(ctx context.Context, st *store.Store, tx *ent.Tx, email string) (*ent.Membership, error) {
	who, err := access.UserByEmail(tenant.System(ctx), tx, email)
	if err != nil {
		return nil, err
	}
	return access.LockMember(ctx, st, tx, who.ID)
}

// ListUserTokens returns the API tokens that the user with this e-mail address created in a deployment, newest first,
// also if the user is not a member any more.
func ListUserTokens(ctx context.Context, cfg config.Config, email string) ([]Token, error) {
	all, err := ListTokens(ctx, cfg, cfg.Deployment)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(t Token) bool { return !strings.EqualFold(t.Creator, strings.TrimSpace(email)) }), nil
}
