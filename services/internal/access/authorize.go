package access

import (
	"slices"

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

// ResolveGrant finds the deployment that a request names by slug, by id or by both, which must agree. A missing name,
// an unknown deployment and a deployment of other people give the same error: NOT_FOUND.
func ResolveGrant(p *Principal, slug string, id int64) (*Grant, error) {
	if p == nil {
		return nil, errNoCredential()
	}
	if slug != "" || id != 0 {
		for i := range p.Grants {
			g := &p.Grants[i]
			if (slug == "" || g.Slug == slug) && (id == 0 || g.DeploymentID == id) {
				return g, nil
			}
		}
	}
	return nil, errNoDeployment()
}

// OnlyGrant returns the deployment of a credential that belongs to exactly one, for requests that name none. Errors:
// NOT_FOUND without a deployment; FAILED_PRECONDITION with several.
func OnlyGrant(p *Principal) (*Grant, error) {
	switch {
	case p == nil:
		return nil, errNoCredential()
	case len(p.Grants) == 0:
		return nil, errNoDeployment()
	case len(p.Grants) > 1:
		return nil, apierr.FailedPrecondition("the credential belongs to %d deployments: name one in deployment_slug where the request has it, else use an API token, which belongs to one", len(p.Grants))
	}
	return &p.Grants[0], nil
}

// Authorize decides whether the principal may call the RPC of this rule in this deployment. p is nil for callers
// without a credential, grant for requests outside a deployment.
//
// Errors: UNAUTHENTICATED without a principal; SCHEME_NOT_ACCEPTED for a kind of credential that the rule does not
// list; NOT_FOUND, not 403, for an API token that lacks the Web API permission (contract facts, 2.1), and for a missing
// grant where one is needed; PERMISSION_DENIED for the wrong role.
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
		return errScope(rule)
	}
	if permission == optionsv1.Permission_PERMISSION_AUTHENTICATED || permission == optionsv1.Permission_PERMISSION_JOIN {
		return nil
	}
	roles, known := allowed[permission]
	switch {
	case !known:
		return apierr.PermissionDenied("this operation has no access rule")
	case grant == nil:
		return errNoDeployment()
	case !slices.Contains(roles, grant.Role):
		return apierr.PermissionDenied("the role %s may not do this: it requires one of %s", grant.Role, joinWords(roles))
	default:
		return nil
	}
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

// errScope names the scope that a token lacks, when another scope than the Web API would do.
func errScope(rule *optionsv1.MethodRule) error {
	if scope, named := ruleScopes[rule.GetScope()]; named {
		return apierr.NotFound("not found: this requires an API token with the scope %s or %s, without limited scopes", scope, ScopeWebAPI)
	}
	return apierr.NotFound("not found")
}

func errNoDeployment() error { return apierr.NotFound("deployment not found") }

func errNoCredential() error {
	return apierr.Unauthenticated("authentication is required: send the header Authorization: Bearer <API token or JSON Web Token>")
}

// errBadCredential is the same error for every malformed, unknown, expired or revoked credential.
func errBadCredential() error {
	return apierr.Unauthenticated("the credential is not valid: it is malformed, unknown, expired or revoked")
}
