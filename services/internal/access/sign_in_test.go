package access

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestParseClaimMap(t *testing.T) {
	m, err := ParseClaimMap(" sec=admin; CN=Dev,OU=Groups=member:web-team: api ;readers=ORG_ROLE_READONLY;")
	want := ClaimMap{
		"sec": {Role: RoleAdmin}, "CN=Dev,OU=Groups": {Role: RoleMember, Teams: []string{"web-team", "api"}}, "readers": {Role: RoleReadOnly},
	}
	if err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("got %v, %v", m, err)
	}
	if got := strings.Join(m.Teams(), " "); got != "api web-team" {
		t.Errorf("teams %q", got)
	}
	for text, want := range map[string]string{
		"": "at least one entry", ";": "at least one entry", "sec": "value=role", "=admin": "value=role", "sec=king": "role must be one of",
		"sec=": "role must be one of", "a=admin;a=member": "twice", "a=member:Web Team": "slug", "a=member:": "slug",
	} {
		if _, err := ParseClaimMap(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestParseDomains(t *testing.T) {
	got, err := ParseDomains("Acme.example, sub.acme.example,acme.example")
	if err != nil || strings.Join(got, " ") != "acme.example sub.acme.example" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "acme", "@acme.example", "*.acme.example", "acme.example,", "a b.example", "-a.example", "acme.example."} {
		if _, err := ParseDomains(text); err == nil || !strings.Contains(err.Error(), "want domains") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestEntitlementAddsUp(t *testing.T) {
	m, err := ParseClaimMap("a=readonly:x;b=member:y:x;c=admin")
	if err != nil {
		t.Fatal(err)
	}
	s := SignIn{Claim: "groups", Claims: m}
	for claim, want := range map[string]string{
		`"a"`: "ORG_ROLE_READONLY x", `["a","b"]`: "ORG_ROLE_MEMBER x y", `["c","b","zzz"]`: "ORG_ROLE_ADMIN x y",
		`"A"`: "", `[]`: "", `["zzz"]`: "", `null`: "", `{"a":true}`: "", `[["a"]]`: "", `["a",1]`: "", `"a b"`: "", `true`: "",
	} {
		given, ok := s.entitlement(map[string]json.RawMessage{"groups": json.RawMessage(claim)})
		got := strings.TrimSpace(string(given.Role) + " " + strings.Join(given.Teams, " "))
		if got != want || ok != (want != "") {
			t.Errorf("%s: got %q %v, want %q", claim, got, ok, want)
		}
	}
	if _, ok := s.entitlement(map[string]json.RawMessage{"other": json.RawMessage(`"a"`)}); ok {
		t.Error("another claim counts")
	}
}
