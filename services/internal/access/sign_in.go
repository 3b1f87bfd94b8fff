package access

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Admission says which people of an OpenID Connect issuer become members at their first sign-in.
type Admission string

// The ways in. An invitation to the verified e-mail address lets its holder in under all of them.
const (
	// AdmitInvited lets in nobody else.
	AdmitInvited Admission = "invited"
	// AdmitDomain lets in people with a verified address of certain domains.
	AdmitDomain Admission = "domain"
	// AdmitClaim lets in people whose ID token has certain values in a claim, and keeps their role and teams as it says.
	AdmitClaim Admission = "claim"
	// AdmitAny lets in everybody whom the issuer knows.
	AdmitAny Admission = "any"
)

// Admissions lists the ways in, the narrowest first.
var Admissions = []Admission{AdmitInvited, AdmitDomain, AdmitClaim, AdmitAny}

// SignIn says who may become a member, and as what. The zero value admits nobody but people who were invited.
type SignIn struct {
	Admission Admission
	// Domains are those of AdmitDomain, in lower case.
	Domains []string
	// Claim is the name of the claim of AdmitClaim, and Claims what each of its values gives.
	Claim  string
	Claims ClaimMap
}

// ClaimMap says what the values of a claim give to their holder.
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

// ParseDomains reads a list of domains, separated by commas.
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

// ParseClaimMap reads entries value=role:team:team, separated by semicolons. What comes before the last = is the value,
// so that it may be a distinguished name of a directory.
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

// Teams are the slugs of all teams that the map names, sorted. Who is in these is for the claim alone to say.
func (m ClaimMap) Teams() []string {
	all := map[string]bool{}
	for _, given := range m {
		for _, team := range given.Teams {
			all[team] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// entitlement adds up what the claim of a token gives: the mightiest role, and all teams. ok is false when no value of
// the claim is in the map.
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

// claimValues reads a claim: one string, or a list of strings. Anything else has no values.
func claimValues(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	return nil
}
