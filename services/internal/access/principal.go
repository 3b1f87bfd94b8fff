package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

// Kind is the kind of a principal.
type Kind string

// The kinds of principals, in the words of logs and history events.
const (
	KindToken Kind = "token"
	KindUser  Kind = "user"
)

// Role is what a principal may do in one deployment, in the words of the contract (ORG_ROLE_*).
type Role string

// The roles of the contract.
const (
	RoleAdmin        Role = "ORG_ROLE_ADMIN"
	RoleMember       Role = "ORG_ROLE_MEMBER"
	RoleImpersonator Role = "ORG_ROLE_IMPERSONATOR"
	RoleReadOnly     Role = "ORG_ROLE_READONLY"
)

// Roles lists all roles, from the most to the least powerful.
var Roles = []Role{RoleAdmin, RoleMember, RoleImpersonator, RoleReadOnly}

// ParseRole accepts a role in the contract's words, with or without ORG_ROLE_, in any case ("member").
func ParseRole(text string) (Role, error) {
	role := Role(strings.ToUpper(text))
	if !strings.HasPrefix(string(role), "ORG_ROLE_") {
		role = "ORG_ROLE_" + role
	}
	if !slices.Contains(Roles, role) {
		return "", fmt.Errorf("role must be one of %s, got %q", joinWords(Roles), text)
	}
	return role, nil
}

// Scope is what an API token may be used for, regardless of its role.
type Scope string

// The scopes of API tokens. The contract calls the first the Web API permission.
const (
	ScopeWebAPI        Scope = "web-api"
	ScopeAgent         Scope = "agent"
	ScopeWorkflowTasks Scope = "workflow-tasks"
	ScopeInstallChecks Scope = "install-checks"
)

// Scopes lists all scopes.
var Scopes = []Scope{ScopeWebAPI, ScopeAgent, ScopeWorkflowTasks, ScopeInstallChecks}

// ruleScopes are the scopes in the words of access rules.
var ruleScopes = map[optionsv1.TokenScope]Scope{
	optionsv1.TokenScope_TOKEN_SCOPE_AGENT:          ScopeAgent,
	optionsv1.TokenScope_TOKEN_SCOPE_WORKFLOW_TASKS: ScopeWorkflowTasks,
	optionsv1.TokenScope_TOKEN_SCOPE_INSTALL_CHECKS: ScopeInstallChecks,
}

// Grant is a principal's role in one deployment.
type Grant struct {
	DeploymentID int64
	Slug         string
	Name         string
	Role         Role
	// PoliciesMigrated is true if the deployment has migrated to detection policies.
	PoliciesMigrated bool
}

// Principal is an authenticated caller. The goroutines of a request share it, so it is not changed after its creation.
type Principal struct {
	Kind Kind
	// ID is the id of the token or of the user, by Kind.
	ID int64
	// UserID is the user, or the creator of the token.
	UserID int64
	// Name is for display: the user's e-mail address or the token's name.
	Name   string
	Scheme optionsv1.Scheme
	// Scopes and LimitedScopes belong to API tokens. A token with limited scopes cannot use the Web API.
	Scopes        []Scope
	LimitedScopes []string
	// Grants are the deployments of the principal: exactly one for an API token, any number for a user.
	Grants []Grant
	// WithoutTeams is true when the look-up of an API token found that its deployment has no teams. false means
	// unknown.
	WithoutTeams bool
	// SessionID is the session of the console that sent the request; 0 for other credentials.
	SessionID int64
	// ProjectID is the only project that the token may send scans of; 0 means no limit.
	ProjectID int64
	// OfDeployment is true for an API token that belongs to its deployment. The role of its creator does not limit it.
	OfDeployment bool
	// ByAdmin is true for an API token that belongs to its deployment, or whose creator is an administrator now.
	ByAdmin bool

	sessionUsedAt int64  // stored last use of the session
	lessened      bool   // the creator of the token may do less than its role
	fullName      string // of users
	claimsAt      int64  // of users: issue time of the newest ID token that updated the user; 0 for none
}

type principalKey struct{}

// NewContext returns a context that carries the principal of the request.
func NewContext(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// FromContext returns the principal of the request. ok is false for callers without a credential.
func FromContext(ctx context.Context) (p *Principal, ok bool) {
	p, _ = ctx.Value(principalKey{}).(*Principal)
	return p, p != nil
}

type grantKey struct{}

// WithGrant returns a context that carries the deployment of the request.
func WithGrant(ctx context.Context, g *Grant) context.Context {
	return context.WithValue(ctx, grantKey{}, g)
}

// GrantFromContext returns the deployment of the request. ok is false for requests without one.
func GrantFromContext(ctx context.Context) (g *Grant, ok bool) {
	g, _ = ctx.Value(grantKey{}).(*Grant)
	return g, g != nil
}

// joinWords formats a list of words for an error text.
func joinWords[T ~string](words []T) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = string(w)
	}
	return strings.Join(parts, ", ")
}
