package access

import (
	"fmt"
	"testing"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

const (
	ok            = errorsv1.Reason_REASON_UNSPECIFIED
	unauthorized  = errorsv1.Reason_REASON_UNAUTHENTICATED
	wrongScheme   = errorsv1.Reason_REASON_SCHEME_NOT_ACCEPTED
	denied        = errorsv1.Reason_REASON_PERMISSION_DENIED
	notFound      = errorsv1.Reason_REASON_NOT_FOUND
	noScope       = errorsv1.Reason_REASON_SCOPE_MISSING
	public        = optionsv1.Permission_PERMISSION_PUBLIC
	authenticated = optionsv1.Permission_PERMISSION_AUTHENTICATED
	read          = optionsv1.Permission_PERMISSION_READ
	triage        = optionsv1.Permission_PERMISSION_TRIAGE
	upload        = optionsv1.Permission_PERMISSION_UPLOAD
	manage        = optionsv1.Permission_PERMISSION_MANAGE
	manageTeams   = optionsv1.Permission_PERMISSION_MANAGE_TEAMS
)

var permissions = []optionsv1.Permission{public, authenticated, read, triage, upload, manage, manageTeams}

func userWith(role Role) *Principal {
	return &Principal{Kind: KindUser, Scheme: optionsv1.Scheme_SCHEME_JWT, Grants: []Grant{{DeploymentID: 1, Slug: "acme", Role: role}}}
}

func tokenWith(role Role, limited []string, scopes ...Scope) *Principal {
	p := userWith(role)
	p.Kind, p.Scheme, p.Scopes, p.LimitedScopes = KindToken, optionsv1.Scheme_SCHEME_WEB_TOKEN, scopes, limited
	return p
}

// TestAuthorize is the whole table: every kind of caller (row) and every permission (column).
func TestAuthorize(t *testing.T) {
	limited := []string{"sms"}
	for name, row := range map[string]struct {
		caller *Principal
		want   [7]errorsv1.Reason
	}{
		"nobody":              {nil, [7]errorsv1.Reason{ok, unauthorized, unauthorized, unauthorized, unauthorized, unauthorized, unauthorized}},
		"user admin":          {userWith(RoleAdmin), [7]errorsv1.Reason{ok, ok, ok, ok, ok, ok, ok}},
		"user member":         {userWith(RoleMember), [7]errorsv1.Reason{ok, ok, ok, ok, ok, denied, ok}},
		"user impersonator":   {userWith(RoleImpersonator), [7]errorsv1.Reason{ok, ok, ok, ok, denied, denied, denied}},
		"user read-only":      {userWith(RoleReadOnly), [7]errorsv1.Reason{ok, ok, ok, denied, denied, denied, denied}},
		"user without role":   {userWith(""), [7]errorsv1.Reason{ok, ok, denied, denied, denied, denied, denied}},
		"token admin":         {tokenWith(RoleAdmin, nil, ScopeWebAPI), [7]errorsv1.Reason{ok, ok, ok, ok, ok, ok, ok}},
		"token member":        {tokenWith(RoleMember, nil, ScopeWebAPI), [7]errorsv1.Reason{ok, ok, ok, ok, ok, denied, ok}},
		"token impersonator":  {tokenWith(RoleImpersonator, nil, ScopeWebAPI), [7]errorsv1.Reason{ok, ok, ok, ok, denied, denied, denied}},
		"token read-only":     {tokenWith(RoleReadOnly, nil, ScopeWebAPI), [7]errorsv1.Reason{ok, ok, ok, denied, denied, denied, denied}},
		"agent admin":         {tokenWith(RoleAdmin, nil, ScopeAgent), [7]errorsv1.Reason{ok, noScope, noScope, noScope, noScope, noScope, noScope}},
		"agent read-only":     {tokenWith(RoleReadOnly, nil, ScopeAgent), [7]errorsv1.Reason{ok, noScope, noScope, noScope, noScope, noScope, noScope}},
		"token of both":       {tokenWith(RoleAdmin, nil, ScopeAgent, ScopeWebAPI), [7]errorsv1.Reason{ok, ok, ok, ok, ok, ok, ok}},
		"token without scope": {tokenWith(RoleAdmin, nil), [7]errorsv1.Reason{ok, noScope, noScope, noScope, noScope, noScope, noScope}},
		"limited token":       {tokenWith(RoleAdmin, limited, ScopeWebAPI), [7]errorsv1.Reason{ok, noScope, noScope, noScope, noScope, noScope, noScope}},
		"limited agent":       {tokenWith(RoleAdmin, limited, ScopeWebAPI, ScopeAgent), [7]errorsv1.Reason{ok, noScope, noScope, noScope, noScope, noScope, noScope}},
	} {
		for i, permission := range permissions {
			t.Run(fmt.Sprintf("%s/%v", name, permission), func(t *testing.T) {
				rule := &optionsv1.MethodRule{Permission: permission, Schemes: []optionsv1.Scheme{optionsv1.Scheme_SCHEME_WEB_TOKEN, optionsv1.Scheme_SCHEME_JWT}}
				var grant *Grant
				if row.caller != nil {
					grant = &row.caller.Grants[0]
				}
				if got := apierr.ReasonOf(Authorize(rule, row.caller, grant)); got != row.want[i] {
					t.Errorf("got %v, want %v", got, row.want[i])
				}
			})
		}
	}
}

// TestAuthorizeScopes: a scope permits the RPCs with rules that name it, to the roles of these rules, and nothing else.
func TestAuthorizeScopes(t *testing.T) {
	for named, scope := range ruleScopes {
		for _, has := range Scopes {
			rule := &optionsv1.MethodRule{Permission: upload, Schemes: []optionsv1.Scheme{optionsv1.Scheme_SCHEME_WEB_TOKEN}, Scope: named}
			want := noScope
			if has == scope || has == ScopeWebAPI {
				want = ok
			}
			token := tokenWith(RoleMember, nil, has)
			if got := apierr.ReasonOf(Authorize(rule, token, &token.Grants[0])); got != want {
				t.Errorf("a rule of %v, a token with %s: got %v, want %v", named, has, got, want)
			}
		}
		reader := tokenWith(RoleReadOnly, nil, scope)
		rule := &optionsv1.MethodRule{Permission: upload, Schemes: []optionsv1.Scheme{optionsv1.Scheme_SCHEME_WEB_TOKEN}, Scope: named}
		assertReason(t, Authorize(rule, reader, &reader.Grants[0]), denied)
		limited := tokenWith(RoleAdmin, []string{"sms"}, ScopeWebAPI)
		assertReason(t, Authorize(rule, limited, &limited.Grants[0]), noScope)
	}
}

// A scope error tells the token's owner what is required and what the token has.
func TestScopeErrorTexts(t *testing.T) {
	const prefix = "not found: this requires an API token with the scope "
	for want, token := range map[string]*Principal{
		"agent or web-api; this token has no scope":                                        tokenWith(RoleMember, nil),
		"agent or web-api; this token has workflow-tasks, install-checks":                  tokenWith(RoleMember, nil, ScopeWorkflowTasks, ScopeInstallChecks),
		"agent or web-api, without limited scopes; this token has web-api, limited to sms": tokenWith(RoleMember, []string{"sms"}, ScopeWebAPI),
	} {
		rule := &optionsv1.MethodRule{Permission: upload, Schemes: []optionsv1.Scheme{optionsv1.Scheme_SCHEME_WEB_TOKEN}, Scope: optionsv1.TokenScope_TOKEN_SCOPE_AGENT}
		if got := statusText(Authorize(rule, token, nil)); got != prefix+want {
			t.Errorf("got %q, want %q", got, prefix+want)
		}
	}
}

func TestAuthorizeSchemes(t *testing.T) {
	jwtOnly := &optionsv1.MethodRule{Permission: read, Schemes: []optionsv1.Scheme{optionsv1.Scheme_SCHEME_JWT}}
	user, token := userWith(RoleAdmin), tokenWith(RoleAdmin, nil, ScopeWebAPI)
	if err := Authorize(jwtOnly, user, &user.Grants[0]); err != nil {
		t.Error(err)
	}
	err := Authorize(jwtOnly, token, &token.Grants[0])
	assertReason(t, err, wrongScheme)
	if got := statusText(err); got != "this operation accepts only a user's JSON Web Token" {
		t.Errorf("got %q", got)
	}
	tokenOnly := &optionsv1.MethodRule{Permission: read, Schemes: []optionsv1.Scheme{optionsv1.Scheme_SCHEME_WEB_TOKEN}}
	assertReason(t, Authorize(tokenOnly, user, &user.Grants[0]), wrongScheme)
}

func TestAuthorizeRefusesWhatItDoesNotKnow(t *testing.T) {
	user := userWith(RoleAdmin)
	both := []optionsv1.Scheme{optionsv1.Scheme_SCHEME_WEB_TOKEN, optionsv1.Scheme_SCHEME_JWT}
	for name, rule := range map[string]*optionsv1.MethodRule{
		"no rule":            nil,
		"empty rule":         {},
		"no permission":      {Schemes: both},
		"unknown permission": {Schemes: both, Permission: 99},
	} {
		if err := Authorize(rule, user, &user.Grants[0]); err == nil {
			t.Errorf("%s: allowed", name)
		}
	}
	assertReason(t, Authorize(&optionsv1.MethodRule{Permission: read, Schemes: both}, user, nil), notFound)
}

func TestResolveGrant(t *testing.T) {
	p := &Principal{Grants: []Grant{
		{DeploymentID: 7, Slug: "acme"}, {DeploymentID: 8, Slug: "globex"}, {DeploymentID: 9, Slug: "7"},
		{DeploymentID: 10, Slug: "a-b-c"}, {DeploymentID: 11, Slug: "d_e"},
		{DeploymentID: 12, Slug: "f-g_h"}, {DeploymentID: 13, Slug: "f_g-h"},
		{DeploymentID: 14, Slug: "i-j_k"}, {DeploymentID: 15, Slug: "i_j-k"}, {DeploymentID: 16, Slug: "i_j_k"},
	}}
	for _, c := range []struct {
		slug        string
		id          int64
		underscored bool
		want        int64
	}{
		{"acme", 0, false, 7}, {"globex", 0, false, 8}, {"", 8, false, 8}, {"acme", 7, false, 7},
		{"acme", 8, false, 0}, {"", 99, false, 0}, {"", -7, false, 0}, {"other", 0, false, 0}, {"other", 7, false, 0},
		{"ACME", 0, false, 0}, {"", 0, false, 0},
		{"8", 0, false, 8}, {"8", 8, false, 8}, {"8", 7, false, 0}, {"7", 0, false, 9}, // an exact slug has precedence over an id
		{"a-b-c", 0, false, 10}, {"a_b_c", 0, false, 0}, {"a_b_c", 0, true, 10}, {"a_b_c", 10, true, 10}, {"a_b_c", 7, true, 0},
		{"a-b_c", 0, true, 0}, {"d-e", 0, true, 0}, {"d-e", 0, false, 0},
		{"f_g_h", 0, true, 0}, {"f_g_h", 12, true, 0}, {"f-g_h", 0, true, 12}, // one name, two deployments
		{"i_j_k", 0, true, 16},
	} {
		g, err := ResolveGrant(p, c.slug, c.id, c.underscored)
		switch {
		case c.want != 0 && (err != nil || g.DeploymentID != c.want):
			t.Errorf("%q %d: got %v, %v", c.slug, c.id, g, err)
		case c.want == 0:
			assertReason(t, err, notFound)
			if g != nil || statusText(err) != "deployment not found" {
				t.Errorf("%q %d: got %v, %v", c.slug, c.id, g, err)
			}
		}
	}
	_, err := ResolveGrant(nil, "acme", 0, false)
	assertReason(t, err, unauthorized)
	_, err = ResolveGrant(&Principal{}, "acme", 0, false)
	assertReason(t, err, notFound)
}

func TestContexts(t *testing.T) {
	ctx := t.Context()
	if _, found := FromContext(ctx); found {
		t.Error("a principal in an empty context")
	}
	if _, found := GrantFromContext(WithGrant(ctx, nil)); found {
		t.Error("a grant in an empty context")
	}
	p := userWith(RoleAdmin)
	ctx = WithGrant(NewContext(ctx, p), &p.Grants[0])
	if got, found := FromContext(ctx); !found || got != p {
		t.Error("the principal is lost")
	}
	if got, found := GrantFromContext(ctx); !found || got.Slug != "acme" {
		t.Error("the grant is lost")
	}
}

func TestParseRole(t *testing.T) {
	for text, want := range map[string]Role{
		"ORG_ROLE_ADMIN": RoleAdmin, "member": RoleMember, "org_role_readonly": RoleReadOnly, "Impersonator": RoleImpersonator,
	} {
		if got, err := ParseRole(text); err != nil || got != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "owner", "ORG_ROLE_"} {
		if _, err := ParseRole(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
