package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"entgo.io/ent/dialect/sql"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// maxTokenName is the longest name of a token in characters.
	maxTokenName = 255
	// maxDeploymentsShown is the maximum number of deployments in an error text.
	maxDeploymentsShown = 20
)

// Tokens creates, lists and revokes API tokens.
type Tokens struct {
	st  *store.Store
	now func() time.Time
}

// NewTokens returns the tokens of a store.
func NewTokens(st *store.Store) *Tokens { return &Tokens{st: st, now: time.Now} }

// TokenSpec describes a token to create.
type TokenSpec struct {
	DeploymentID int64
	// UserID is the creator, whose present role limits the token. 0 means that the token belongs to the deployment; the
	// deployment's first administrator is then named as its creator.
	UserID int64
	Name   string
	// Scopes are what the token may be used for. A token without any can do nothing.
	Scopes []Scope
	// LimitedScopes restrict the token to parts of the API other than the Web API.
	LimitedScopes []string
	Role          Role
	// ExpiresAt is zero for a token that does not expire.
	ExpiresAt time.Time
	// ProjectID is the project whose CI uses the token; 0 for other tokens.
	ProjectID int64
	// parentID is the token that creates it; 0 for none.
	parentID int64
	// ofDeployment: it belongs to the deployment.
	ofDeployment bool
}

// LeastRole is the least role with which the scopes are useful. With the Web API scope alone a token can read with the
// lowest role; the other scopes need a role that may write.
func LeastRole(scopes []Scope) Role {
	if slices.ContainsFunc(scopes, func(s Scope) bool { return s != ScopeWebAPI }) {
		return RoleMember
	}
	return RoleReadOnly
}

// CheckScopeRole refuses the administrator role without the Web API scope. The other scopes never need more than the
// member role, and tokens in pipelines are the most likely to leak. Errors: INVALID_ARGUMENT.
func CheckScopeRole(scopes []Scope, role Role) error {
	if role != RoleAdmin || slices.Contains(scopes, ScopeWebAPI) {
		return nil
	}
	return apierr.InvalidArgument("role", "role must be at most %s for a token without the scope %s, got %s: name a lower role, or add that scope",
		RoleMember, ScopeWebAPI, role)
}

// DeploymentBySlug finds a deployment for the server's own commands, which are not limited to one tenant. An empty slug
// means the only deployment. Errors: NOT_FOUND and FAILED_PRECONDITION, which list the deployments.
func (t *Tokens) DeploymentBySlug(ctx context.Context, slug string) (*ent.Deployment, error) {
	if slug != "" {
		row, err := t.st.Reader.Deployment.Query().Where(deployment.Slug(slug)).Only(tenant.System(ctx))
		if !ent.IsNotFound(err) {
			return row, err
		}
	}
	rows, err := t.st.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldSlug)).Limit(maxDeploymentsShown + 1).All(tenant.System(ctx))
	switch {
	case err != nil:
		return nil, err
	case slug != "":
		return nil, apierr.NotFound("deployment %q not found; there is %s", slug, slugsOf(rows))
	case len(rows) == 0:
		return nil, apierr.NotFound("there is no deployment yet: start the server once (palisade serve)")
	case len(rows) > 1:
		return nil, apierr.FailedPrecondition("there are several deployments, %s: name one with --deployment", slugsOf(rows))
	}
	return rows[0], nil
}

func slugsOf(rows []*ent.Deployment) string {
	if len(rows) == 0 {
		return "none"
	}
	var slugs []string
	for i, row := range rows {
		if i == maxDeploymentsShown {
			slugs = append(slugs, "…")
			break
		}
		slugs = append(slugs, row.Slug)
	}
	return strings.Join(slugs, ", ")
}

// Create creates a token and returns it with its value. The value is not stored and cannot be shown again. Errors:
// INVALID_ARGUMENT naming the field; FAILED_PRECONDITION when a creator is needed and the deployment has no
// administrator.
func (t *Tokens) Create(ctx context.Context, spec TokenSpec) (*ent.Token, string, error) {
	if err := t.check(spec); err != nil {
		return nil, "", err
	}
	if spec.UserID == 0 {
		admin, err := t.firstAdmin(ctx, spec.DeploymentID)
		if err != nil {
			return nil, "", err
		}
		spec.UserID, spec.ofDeployment = admin, true
	}
	value := newTokenValue()
	var row *ent.Token
	err := t.st.Write(tenant.NewContext(ctx, spec.DeploymentID), func(ctx context.Context, tx *ent.Tx) (err error) {
		if row, err = insertToken(ctx, tx, spec, value, t.now()); err == nil {
			audit.Change(ctx, auditToken, row.ID, nil, shownToken(row))
		}
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("create token: %w", err)
	}
	return row, value, nil
}

// CreateAs creates a token for a caller, in the transaction tx. The token can do no more than the caller: spec.Role is
// at most role, the caller's own role in the deployment. A token that creates a token becomes its parent: the new token
// has no scope that its parent lacks, expires no later, belongs to the deployment if its parent does, and is revoked
// with it. UserID is set to the caller's. The value is not stored and cannot be shown again. Errors: INVALID_ARGUMENT
// naming the field; PERMISSION_DENIED for a token more powerful than the caller.
func (t *Tokens) CreateAs(ctx context.Context, tx *ent.Tx, caller *Principal, role Role, spec TokenSpec) (*ent.Token, string, error) {
	if err := t.check(spec); err != nil {
		return nil, "", err
	}
	if slices.Index(Roles, spec.Role) < slices.Index(Roles, role) {
		return nil, "", apierr.PermissionDenied("role must not be above the caller's own, %s, got %s", role, spec.Role)
	}
	if caller.Kind == KindToken {
		if err := t.withinToken(ctx, tx, caller, spec); err != nil {
			return nil, "", err
		}
	}
	if err := CheckScopeRole(spec.Scopes, spec.Role); err != nil {
		return nil, "", err
	}
	spec.UserID, spec.parentID = caller.UserID, 0
	if caller.Kind == KindToken {
		spec.parentID, spec.ofDeployment = caller.ID, caller.OfDeployment
	}
	value := newTokenValue()
	row, err := insertToken(ctx, tx, spec, value, t.now())
	if err != nil {
		return nil, "", fmt.Errorf("create token: %w", err)
	}
	return row, value, nil
}

// CreateForCI creates a token for the CI of a project, in the transaction tx. It may only send scans. Unlike a token of
// CreateAs it has no parent and belongs to the deployment: its value goes to the secrets of the repository and not to
// the caller, and the CI must not stop when the caller leaves or the caller's token ends.
func (t *Tokens) CreateForCI(ctx context.Context, tx *ent.Tx, userID, projectID int64, name string, expiresAt time.Time) (*ent.Token, string, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	spec := TokenSpec{
		DeploymentID: deploymentID, UserID: userID, ProjectID: projectID, Name: name, Scopes: []Scope{ScopeAgent}, Role: RoleMember, ExpiresAt: expiresAt,
	}
	if err := t.check(spec); err != nil {
		return nil, "", err
	}
	value := newTokenValue()
	row, err := insertToken(ctx, tx, spec, value, t.now())
	if err != nil {
		return nil, "", fmt.Errorf("create token: %w", err)
	}
	audit.Change(ctx, auditToken, row.ID, nil, shownToken(row))
	return row, value, nil
}

// MakePermanent takes the expiry from tokens, in the transaction tx.
func (t *Tokens) MakePermanent(ctx context.Context, tx *ent.Tx, ids []int64) error {
	rows, err := t.Lock(ctx, tx, store.WithIDs[predicate.Token](ids))
	if err != nil {
		return err
	}
	if err := tx.Token.Update().Where(store.WithIDs[predicate.Token](ids)).ClearExpiresAt().Exec(ctx); err != nil {
		return err
	}
	for _, row := range rows {
		before := shownToken(row)
		row.ExpiresAt = nil
		audit.Change(ctx, auditToken, row.ID, before, shownToken(row))
	}
	return nil
}

// List returns all tokens of a deployment, the newest first, including revoked and expired ones.
func (t *Tokens) List(ctx context.Context, deploymentID int64) ([]*ent.Token, error) {
	return t.st.Reader.Token.Query().
		Order(token.ByCreatedAt(sql.OrderDesc()), token.ByID(sql.OrderDesc())).
		All(tenant.NewContext(ctx, deploymentID))
}

func (t *Tokens) check(spec TokenSpec) error {
	switch {
	case strings.TrimSpace(spec.Name) == "" || utf8.RuneCountInString(spec.Name) > maxTokenName:
		return apierr.InvalidArgument("name", "name must have 1 to %d characters, and not only spaces, got %d", maxTokenName, utf8.RuneCountInString(spec.Name))
	case !slices.Contains(Roles, spec.Role):
		return apierr.InvalidArgument("role", "role must be one of %s, got %q", joinWords(Roles), spec.Role)
	case !spec.ExpiresAt.IsZero() && !spec.ExpiresAt.After(t.now()):
		return apierr.InvalidArgument("expiresAt", "expiresAt must be in the future, got %s", spec.ExpiresAt.UTC().Format(time.RFC3339))
	}
	for _, scope := range spec.Scopes {
		if !slices.Contains(Scopes, scope) {
			return apierr.InvalidArgument("scopes", "scopes may contain %s, got %q", joinWords(Scopes), scope)
		}
	}
	return nil
}

// auditToken is the name of a token in the audit trail.
const auditToken = "token"

func shownToken(row *ent.Token) *identityv1.Token {
	out := &identityv1.Token{
		Id: row.ID, Name: row.Name, Hint: row.Hint, Scopes: row.Scopes, LimitedScopes: row.LimitedScopes, Role: row.Role, CreatedBy: row.UserID,
		CreatedAt: timestamppb.New(store.Time(row.CreatedAt)),
	}
	if row.ExpiresAt != nil {
		out.ExpiresAt = timestamppb.New(store.Time(*row.ExpiresAt))
	}
	if row.HandedOverAt != nil {
		out.HandedOverAt = timestamppb.New(store.Time(*row.HandedOverAt))
	}
	return out
}

func (t *Tokens) firstAdmin(ctx context.Context, deploymentID int64) (int64, error) {
	row, err := t.st.Reader.Membership.Query().Where(membership.Role(string(RoleAdmin))).
		Order(membership.ByID()).First(tenant.NewContext(ctx, deploymentID))
	if ent.IsNotFound(err) {
		return 0, apierr.FailedPrecondition("deployment %d has no administrator who could own the token", deploymentID)
	}
	if err != nil {
		return 0, err
	}
	return row.UserID, nil
}

// insertToken stores the hash of value, never value itself.
func insertToken(ctx context.Context, tx *ent.Tx, spec TokenSpec, value string, now time.Time) (*ent.Token, error) {
	scopes := make([]string, len(spec.Scopes))
	for i, s := range spec.Scopes {
		scopes[i] = string(s)
	}
	create := tx.Token.Create().
		SetDeploymentID(spec.DeploymentID).SetUserID(spec.UserID).SetName(spec.Name).
		SetHash(hashToken(value)).SetHint(tokenHint(value)).
		SetScopes(scopes).SetRole(string(spec.Role)).SetCreatedAt(store.Micros(now))
	if spec.parentID != 0 {
		create.SetParentID(spec.parentID)
	}
	if spec.ofDeployment {
		create.SetHandedOverAt(store.Micros(now))
	}
	if spec.ProjectID != 0 {
		create.SetProjectID(spec.ProjectID)
	}
	if len(spec.LimitedScopes) > 0 {
		create.SetLimitedScopes(spec.LimitedScopes)
	}
	if !spec.ExpiresAt.IsZero() {
		create.SetExpiresAt(store.Micros(spec.ExpiresAt))
	}
	return create.Save(ctx)
}
