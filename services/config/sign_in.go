package config

import (
	"slices"
	"strings"

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
