package access

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Admission decides which users of an OpenID Connect issuer become members at their first sign-in.
type Admission string

// The admission policies. Under each of them, an invitation to the verified e-mail address admits its holder.
const (
	// AdmitInvited admits only users with an invitation.
	AdmitInvited Admission = "invited"
	// AdmitDomain admits users with a verified address in certain domains.
	AdmitDomain Admission = "domain"
	// AdmitClaim admits users with certain values in a claim of their ID token. The claim also sets their role and teams.
	AdmitClaim Admission = "claim"
	// AdmitAny admits every user of the issuer.
	AdmitAny Admission = "any"
)

// Admissions lists the admission policies, from the strictest to the most open.
var Admissions = []Admission{AdmitInvited, AdmitDomain, AdmitClaim, AdmitAny}

// SignIn decides who may become a member, and with which role. The zero value admits invited users only.
type SignIn struct {
	Admission Admission
	// Domains are used by AdmitDomain, in lower case.
	Domains []string
	// Claim is the name of the claim for AdmitClaim. Claims maps its values.
	Claim  string
	Claims ClaimMap
}

// ClaimMap maps values of a claim to what they grant.
type ClaimMap map[string]Entitlement

// Entitlement is a role in the first deployment, and the slugs of teams there.
type Entitlement struct {
	Role  Role
	Teams []string
}

var (
	domainForm   = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	teamSlugForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$`)
)

// ParseDomains reads a comma-separated list of domains.
func ParseDomains(text string) ([]string, error) {
	var domains []string
	for entry := range strings.SplitSeq(text, ",") {
		domain := strings.ToLower(strings.TrimSpace(entry))
		if !domainForm.MatchString(domain) || len(domain) > 253 {
			return nil, fmt.Errorf("got %q, want domains such as acme.example, separated by commas, without @ and *", entry)
		}
		if !slices.Contains(domains, domain) {
			domains = append(domains, domain)
		}
	}
	return domains, nil
}

// ParseClaimMap reads entries value=role:team:team, separated by semicolons. The value ends at the last =, so that it
// may be a distinguished name of a directory.
func ParseClaimMap(text string) (ClaimMap, error) {
	m := ClaimMap{}
	for entry := range strings.SplitSeq(text, ";") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue // after a semicolon at the end
		}
		at := strings.LastIndexByte(entry, '=')
		value := ""
		if at > 0 {
			value = strings.TrimSpace(entry[:at])
		}
		if value == "" {
			return nil, fmt.Errorf("got %q, want entries value=role or value=role:team:team, separated by semicolons", entry)
		}
		if _, twice := m[value]; twice {
			return nil, fmt.Errorf("names the value %q twice; give it all its teams in one entry", value)
		}
		words := strings.Split(entry[at+1:], ":")
		role, err := ParseRole(strings.TrimSpace(words[0]))
		if err != nil {
			return nil, fmt.Errorf("the value %q: %w", value, err)
		}
		given := Entitlement{Role: role}
		for _, word := range words[1:] {
			team := strings.TrimSpace(word)
			if !teamSlugForm.MatchString(team) {
				return nil, fmt.Errorf("the value %q: a team is named by its slug, such as web-team, got %q", value, team)
			}
			given.Teams = append(given.Teams, team)
		}
		m[value] = given
	}
	if len(m) == 0 {
		return nil, fmt.Errorf("got %q, want at least one entry such as security=admin", text)
	}
	return m, nil
}

// Teams are the slugs of all teams that the map names, sorted. Only the claim decides who is a member of them.
func (m ClaimMap) Teams() []string {
	all := map[string]bool{}
	for _, given := range m {
		for _, team := range given.Teams {
			all[team] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// entitlement combines everything that the claim of a token grants: the most powerful role, and all teams. ok is false
// when no value of the claim is in the map.
func (s *SignIn) entitlement(claims map[string]json.RawMessage) (sum Entitlement, ok bool) {
	for _, value := range claimValues(claims[s.Claim]) {
		given, known := s.Claims[value]
		if !known {
			continue
		}
		if !ok || slices.Index(Roles, given.Role) < slices.Index(Roles, sum.Role) {
			sum.Role = given.Role
		}
		sum.Teams, ok = append(sum.Teams, given.Teams...), true
	}
	slices.Sort(sum.Teams)
	sum.Teams = slices.Compact(sum.Teams)
	return sum, ok
}

// claimValues reads a claim that is a string or a list of strings. Anything else has no values.
func claimValues(raw json.RawMessage) []string {
	values, _ := readClaim(raw)
	return values
}

// readClaim reads a claim that is a string or a list of strings. ok is false for anything else. An absent claim and
// null are no values: OpenID Connect leaves a claim out that has none, and some providers write an empty list as null.
func readClaim(raw json.RawMessage) (values []string, ok bool) {
	if len(raw) == 0 {
		return nil, true
	}
	var one *string
	if json.Unmarshal(raw, &one) == nil {
		if one == nil {
			return nil, true
		}
		return []string{*one}, true
	}
	var list []*string
	if json.Unmarshal(raw, &list) != nil || slices.Contains(list, nil) {
		return nil, false
	}
	for _, value := range list {
		values = append(values, *value)
	}
	return values, true
}

// gap is why a token does not say which values the claim of a person has. Then nothing follows from what it lacks.
type gap string

const (
	// gapNone: the token has all values.
	gapNone gap = ""
	// gapOverage: the values are too many for a token. The provider offers them elsewhere.
	gapOverage gap = "overage"
	// gapType: the claim is neither a string nor a list of strings.
	gapType gap = "type"
)

// groupsClaim is the claim that hasgroups is about.
const groupsClaim = "groups"

// gap looks for the signs that a token lacks values of the claim, also if it has some. Providers mark a claim that does
// not fit as a distributed claim (OpenID Connect Core, 5.6.2). Entra ID writes hasgroups instead into tokens that pass
// through a URL.
func (s *SignIn) gap(claims map[string]json.RawMessage) gap {
	if s.Admission != AdmitClaim {
		return gapNone
	}
	var elsewhere map[string]json.RawMessage
	if json.Unmarshal(claims["_claim_names"], &elsewhere) == nil {
		if source, named := elsewhere[s.Claim]; named && string(source) != "null" {
			return gapOverage
		}
	}
	var some looseBool
	if s.Claim == groupsClaim && some.UnmarshalJSON(claims["hasgroups"]) == nil && bool(some) {
		return gapOverage
	}
	if _, ok := readClaim(claims[s.Claim]); !ok {
		return gapType
	}
	return gapNone
}

// explain says what is wrong with a token, and the cure, for people.
func (g gap) explain(claim string) (cause, cure string) {
	if g == gapType {
		return fmt.Sprintf("the claim %s of its token is neither a string nor a list of strings", claim),
			"an administrator of the identity provider has to correct the claim"
	}
	return fmt.Sprintf("its token leaves out the claim %s, because the account has too many groups for a token (overage)",
			claim), "an administrator of the identity provider has to assign fewer groups to the application, to filter the " +
			"groups in the token, or to use app roles in another claim (oidc-claim)"
}
