package config

import (
	"slices"
	"strings"
	"time"

	"github.com/palisade/palisade/services/internal/access"
)

// SignIn describes who may become a member through the OpenID Connect issuer. The settings must be valid.
func (c Config) SignIn() (access.SignIn, error) {
	s := access.SignIn{Admission: access.Admission(c.OIDCMembership), Claim: c.OIDCClaim}
	var err error
	switch s.Admission {
	case access.AdmitDomain:
		s.Domains, err = access.ParseDomains(c.OIDCDomains)
	case access.AdmitClaim:
		s.Claims, err = access.ParseClaimMap(c.OIDCClaimMap)
	}
	return s, err
}

func (c Config) validateSignIn(p *problemList) {
	mode := access.Admission(c.OIDCMembership)
	if !slices.Contains(access.Admissions, mode) {
		p.add("oidc-membership", "got %q, want invited, domain, claim or any", c.OIDCMembership)
		return
	}
	if mode != access.AdmitInvited && c.OIDCIssuer == "" {
		p.add("oidc-membership, oidc-issuer", "%s is set, but nobody signs in without an issuer: set oidc-issuer and oidc-audience, or remove it", mode)
	}
	for _, s := range []struct {
		key, value string
		of         access.Admission
	}{{"oidc-domains", c.OIDCDomains, access.AdmitDomain}, {"oidc-claim", c.OIDCClaim, access.AdmitClaim}, {"oidc-claim-map", c.OIDCClaimMap, access.AdmitClaim}} {
		switch {
		case s.value == "" && mode == s.of:
			p.add(s.key, "is empty, but oidc-membership is %s, which needs it", mode)
		case s.value != "" && mode != s.of:
			p.add(s.key, "is set, but oidc-membership is %s, which does not use it: set oidc-membership to %s, or remove it", mode, s.of)
		}
	}
	if mode == access.AdmitDomain && c.OIDCDomains != "" {
		if _, err := access.ParseDomains(c.OIDCDomains); err != nil {
			p.add("oidc-domains", "%v", err)
		}
	}
	if mode == access.AdmitClaim && c.OIDCClaimMap != "" {
		if _, err := access.ParseClaimMap(c.OIDCClaimMap); err != nil {
			p.add("oidc-claim-map", "%v", err)
		}
	}
	if c.OIDCClaim != strings.TrimSpace(c.OIDCClaim) {
		p.add("oidc-claim", "got %q, want the name of a claim without spaces around it, such as groups", c.OIDCClaim)
	}
}

// The limits of sessions. The last use of a session is accurate to a minute.
const (
	minSessionIdle     = 5 * time.Minute
	maxSessionLifetime = 30 * 24 * time.Hour
)

// validateConsole checks the settings for signing in to the console.
func (c Config) validateConsole(p *problemList) {
	switch {
	case c.OIDCClientID == "" && c.OIDCClientSecret != "":
		p.add("oidc-client-secret, oidc-client-id", "the secret is set without the id of its client")
	case c.OIDCClientID != "" && c.OIDCIssuer == "":
		p.add("oidc-client-id, oidc-issuer", "the client is set without its issuer: set oidc-issuer and oidc-audience")
	case c.OIDCClientID != "" && c.PublicURL == "" && IsReachable(c.HTTP):
		p.add("oidc-client-id, public-url", "the issuer sends browsers back to public-url, which is empty")
	}
	if !slices.Contains(strings.Fields(c.OIDCScopes), "openid") {
		p.add("oidc-scopes", "got %q, want scopes separated by spaces, with openid among them", c.OIDCScopes)
	}
	if c.SessionIdle < minSessionIdle || c.SessionIdle > c.SessionLifetime {
		p.add("session-idle", "got %s, want %s to session-lifetime (%s)", c.SessionIdle, minSessionIdle, c.SessionLifetime)
	}
	if c.SessionLifetime > maxSessionLifetime {
		p.add("session-lifetime", "got %s, want up to %s", c.SessionLifetime, maxSessionLifetime)
	}
}
