package access

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

// allowed lists the roles that hold a permission inside a deployment (contract facts, 2.1 and 3.15).
var allowed = map[optionsv1.Permission][]Role{
	optionsv1.Permission_PERMISSION_READ:         Roles,
	optionsv1.Permission_PERMISSION_TRIAGE:       {RoleAdmin, RoleMember, RoleImpersonator},
	optionsv1.Permission_PERMISSION_UPLOAD:       {RoleAdmin, RoleMember},
	optionsv1.Permission_PERMISSION_MANAGE:       {RoleAdmin},
	optionsv1.Permission_PERMISSION_MANAGE_TEAMS: {RoleAdmin, RoleMember},
}

// ResolveGrant finds the deployment that a request names by slug, by id or by both, which must agree. An exact slug has
// precedence over the other forms of Named, which must mean a single deployment of the caller. A missing name, an
// unknown deployment and a deployment of other people give the same error: NOT_FOUND.
func ResolveGrant(p *Principal, slug string, id int64, underscored bool) (*Grant, error) {
	if p == nil {
		return nil, errNoCredential()
	}
	var found *Grant
	matches := 0
	for i := range p.Grants {
		g := &p.Grants[i]
		if slug == g.Slug || slug == "" && id == g.DeploymentID {
			found, matches = g, 1
			break
		}
		if g.Named(slug, underscored) {
			found = g
			matches++
		}
	}
	if matches != 1 || id != 0 && found.DeploymentID != id {
		return nil, NoDeployment()
	}
	return found, nil
}

// Named reports whether clients mean this deployment by a name: its slug or its id. If underscored, also the slug with
// every "-" written as "_".
func (g *Grant) Named(name string, underscored bool) bool {
	return name == g.Slug || name == strconv.FormatInt(g.DeploymentID, 10) ||
		underscored && name == strings.ReplaceAll(g.Slug, "-", "_")
}

// OnlyGrant returns the deployment of a credential that belongs to exactly one, for requests that name none. Errors:
// NOT_FOUND without a deployment; FAILED_PRECONDITION with several.
func OnlyGrant(p *Principal) (*Grant, error) {
	switch {
	case p == nil:
		return nil, errNoCredential()
	case len(p.Grants) == 0:
		return nil, NoDeployment()
	case len(p.Grants) > 1:
		return nil, apierr.FailedPrecondition("the credential belongs to %d deployments: name one in deployment_slug where the request has it, else use an API token, which belongs to one", len(p.Grants))
	}
	return &p.Grants[0], nil
}

// Authorize decides whether the principal may call the RPC of this rule in this deployment. p is nil for callers
// without a credential, grant for requests outside a deployment.
//
// Errors: UNAUTHENTICATED without a principal; SCHEME_NOT_ACCEPTED for a kind of credential that the rule does not
// list; SCOPE_MISSING, which is 404 and not 403, for an API token that lacks the scope (contract facts, 2.1); NOT_FOUND
// for a missing grant where one is needed; PERMISSION_DENIED for the wrong role; DEPLOYMENT_MIGRATED for an operation
// that the deployment's migration retired.
func Authorize(rule *optionsv1.MethodRule, p *Principal, grant *Grant) error {
	permission := rule.GetPermission()
	if permission == optionsv1.Permission_PERMISSION_PUBLIC {
		return nil
	}
	if p == nil {
		return errNoCredential()
	}
	if !slices.Contains(rule.GetSchemes(), p.Scheme) {
		return errScheme(rule)
	}
	if p.Kind == KindToken && !tokenReaches(p, rule) {
		return errScope(rule, p)
	}
	if permission == optionsv1.Permission_PERMISSION_AUTHENTICATED || permission == optionsv1.Permission_PERMISSION_JOIN {
		return nil
	}
	roles, known := allowed[permission]
	switch {
	case !known:
		return apierr.PermissionDenied("this operation has no access rule")
	case grant == nil:
		return NoDeployment()
	case !slices.Contains(roles, grant.Role):
		return errRole(p, grant, roles)
	case grant.PoliciesMigrated:
		return errRetired(rule, p)
	default:
		return nil
	}
}

func errRole(p *Principal, grant *Grant, roles []Role) error {
	if p.lessened {
		return apierr.PermissionDenied("the role %s may not do this: it requires one of %s. The token may do no more than its creator, who has this role now",
			grant.Role, joinWords(roles))
	}
	return apierr.PermissionDenied("the role %s may not do this: it requires one of %s", grant.Role, joinWords(roles))
}

// errRetired refuses operations that the migration to detection policies retires (contract facts, 2.2).
func errRetired(rule *optionsv1.MethodRule, p *Principal) error {
	retired := rule.GetRetired()
	if retired == optionsv1.Retired_RETIRED_ALL || retired == optionsv1.Retired_RETIRED_TOKENS && p.Kind == KindToken {
		return apierr.New(codes.FailedPrecondition, errorsv1.Reason_REASON_DEPLOYMENT_MIGRATED,
			"the deployment has migrated to detection policies: use /api/policies/v2/deployments/{deployment_id}/detection-policy")
	}
	return nil
}

// tokenReaches applies the scopes of an API token. The Web API scope without limited scopes allows every RPC. Any other
// scope allows exactly the RPCs with rules that name it.
func tokenReaches(p *Principal, rule *optionsv1.MethodRule) bool {
	if reachesAll(p) {
		return true
	}
	scope, named := ruleScopes[rule.GetScope()]
	return named && slices.Contains(p.Scopes, scope)
}

func reachesAll(p *Principal) bool {
	return slices.Contains(p.Scopes, ScopeWebAPI) && len(p.LimitedScopes) == 0
}

func errScheme(rule *optionsv1.MethodRule) error {
	if slices.Equal(rule.GetSchemes(), []optionsv1.Scheme{optionsv1.Scheme_SCHEME_JWT}) {
		return apierr.SchemeNotAccepted("this operation accepts only a user's JSON Web Token")
	}
	return apierr.SchemeNotAccepted("this operation accepts only an API token")
}

// errScope tells the owner of a token which scopes the operation requires, and which ones the token has.
func errScope(rule *optionsv1.MethodRule, p *Principal) error {
	required := string(ScopeWebAPI)
	if scope, named := ruleScopes[rule.GetScope()]; named {
		required = string(scope) + " or " + required
	}
	has := "no scope"
	if len(p.Scopes) > 0 {
		has = joinWords(p.Scopes)
	}
	if len(p.LimitedScopes) > 0 {
		required += ", without limited scopes"
		has += ", limited to " + strings.Join(p.LimitedScopes, ", ")
	}
	return apierr.ScopeMissing("not found: this requires an API token with the scope %s; this token has %s", required, has)
}

// NoDeployment is the error for a deployment that does not exist, or not for this caller.
func NoDeployment() error { return apierr.NotFound("deployment not found") }

func errNoCredential() error {
	return apierr.Unauthenticated("authentication is required: send the header Authorization: Bearer <API token or JSON Web Token>")
}

// errNoSession is the same error for every malformed, unknown, ended or revoked session.
func errNoSession() error { return apierr.Unauthenticated("the session has ended: sign in again") }

// errNoCreator tells the owner of a token that is not revoked why it may do nothing.
func errNoCreator() error {
	return apierr.PermissionDenied("the creator of this API token is no longer a member of its deployment: an administrator can hand the token " +
		"over to the deployment (palisade token hand-over), or create another")
}

// errBadCredential is the same error for every malformed, unknown, expired or revoked credential. The cause is for the
// log of calls only, and contains no part of the credential that is secret.
func errBadCredential(cause string, args ...any) error {
	refused := apierr.New(codes.Unauthenticated, errorsv1.Reason_REASON_UNAUTHENTICATED,
		"the credential is not valid: it is malformed, unknown, expired or revoked")
	return refused.WithCause(fmt.Errorf(cause, args...))
}
