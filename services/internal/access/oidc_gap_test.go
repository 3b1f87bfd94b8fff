package access

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/store"
)

// claimsServer admits by the claim groups, and keeps the log.
type claimsServer struct {
	*server
	idp *provider
	log bytes.Buffer
}

func newClaimsServer(t *testing.T, st *store.Store) *claimsServer {
	t.Helper()
	claims, err := ParseClaimMap("sec=admin;dev=member:web")
	if err != nil {
		t.Fatal(err)
	}
	c := &claimsServer{idp: newProvider(t)}
	c.server = newServer(t, st).withOIDC(t, c.idp)
	c.withSignIn(SignIn{Admission: AdmitClaim, Claim: "groups", Claims: claims})
	c.oidc.log = slog.New(slog.NewTextHandler(&c.log, nil))
	write(t, st, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Team.Create().SetDeploymentID(c.first.Deployment.ID).SetName("web").SetSlug("web").SetCreatedAt(1).
			SetUpdatedAt(1).Exec(ctx)
	})
	return c
}

// token is newer than the ones before. Its claims alternate names and values.
func (c *claimsServer) token(t *testing.T, claims ...any) string {
	t.Helper()
	c.clock.advance(time.Minute)
	changes := map[string]any{"email_verified": false}
	for i := 0; i < len(claims); i += 2 {
		changes[claims[i].(string)] = claims[i+1]
	}
	return c.idp.idToken(t, c.clock.now(), changes)
}

// logged returns the lines of the log since the last call.
func (c *claimsServer) logged() []string {
	defer c.log.Reset()
	return strings.FieldsFunc(c.log.String(), func(r rune) bool { return r == '\n' })
}

// oneLine reports whether the log has one line, with these texts.
func oneLine(lines []string, texts ...string) bool {
	missing := func(text string) bool { return !strings.Contains(lines[0], text) }
	return len(lines) == 1 && !slices.ContainsFunc(texts, missing)
}

// jsonNull is a claim that is null. In the claims of idToken, nil removes one.
type jsonNull struct{}

func (jsonNull) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// distributed are the members of a token that names another place for a claim.
func distributed(claim string) []any {
	return []any{
		"_claim_names", map[string]any{claim: "src1"},
		"_claim_sources", map[string]any{"src1": map[string]any{"endpoint": "https://graph.example/groups"}},
	}
}

// Regression: a token without the groups of a member, because they are too many, ended the membership.
func TestOIDCTokenWithoutTheGroups(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		claims []any
		keeps  bool
		why    string
	}{
		"elsewhere":                   {distributed("groups"), true, "too many groups"},
		"elsewhere, and an empty one": {append(distributed("groups"), "groups", []string{}), true, "too many groups"},
		"elsewhere, and some":         {append(distributed("groups"), "groups", []string{"other"}), true, "too many groups"},
		"elsewhere, and a lower role": {append(distributed("groups"), "groups", "dev"), true, "too many groups"},
		"hasgroups":                   {[]any{"hasgroups", true}, true, "too many groups"},
		"hasgroups as a text":         {[]any{"hasgroups", "true"}, true, "too many groups"},
		"a number":                    {[]any{"groups", 7}, true, "neither a string nor a list"},
		"an object":                   {[]any{"groups", map[string]any{"sec": true}}, true, "neither a string nor a list"},
		"a list of numbers":           {[]any{"groups", []any{"sec", 7}}, true, "neither a string nor a list"},
		"absent":                      {nil, false, ""},
		"empty":                       {[]any{"groups", []string{}}, false, ""},
		"null":                        {[]any{"groups", jsonNull{}}, false, ""},
		"other groups":                {[]any{"groups", []string{"other"}}, false, ""},
		"another claim is elsewhere":  {distributed("roles"), false, ""},
		"hasgroups is false":          {[]any{"hasgroups", false}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachStore(t, func(t *testing.T, st *store.Store) {
				c := newClaimsServer(t, st)
				c.mustLogin(t, c.token(t, "groups", []string{"sec", "dev"}))
				raw := c.token(t, one.claims...)
				for range 3 {
					p := c.mustLogin(t, raw)
					keeps := len(p.Grants) == 1 && p.Grants[0].Role == RoleAdmin && c.teamsOf(t, p.ID) == "web"
					if keeps != one.keeps || !keeps && (len(p.Grants) > 0 || c.teamsOf(t, p.ID) != "") {
						t.Errorf("got %+v, teams %q", p.Grants, c.teamsOf(t, p.ID))
					}
				}
				lines := c.logged()
				want := "the member keeps role and teams"
				if !one.keeps {
					want = "the last administrator lost the role"
				}
				if !oneLine(lines, "level=WARN", want, one.why) {
					t.Errorf("the log: %q", lines)
				}
				if strings.Contains(strings.Join(lines, ""), raw) {
					t.Error("the log has a token")
				}
				_, err := c.login(t, c.token(t, append(one.claims, "sub", "new")...))
				p, _ := c.login(t, c.token(t, "groups", "dev"))
				if p == nil || len(p.Grants) != 1 || p.Grants[0].Role != RoleMember {
					t.Errorf("the groups are back: %+v", p)
				}
				if name == "elsewhere, and a lower role" {
					return // the listed value admits
				}
				assertReason(t, err, denied)
				text, cure := statusText(err), "an administrator of the identity provider has to"
				if one.keeps != strings.Contains(text, cure) || !strings.Contains(text, one.why) {
					t.Errorf("a new user reads %q", text)
				}
			})
		})
	}
}

// A token whose sign of an overage is broken is no ID token. It changes nothing.
func TestOIDCBrokenOverage(t *testing.T) {
	t.Parallel()
	c := newClaimsServer(t, openSQLite(t))
	known := c.mustLogin(t, c.token(t, "groups", "dev"))
	for name, names := range map[string]any{
		"no source": map[string]any{"groups": "src1"}, "null": map[string]any{"groups": jsonNull{}}, "no object": "groups",
	} {
		raw := c.token(t, "_claim_names", names)
		p, err := c.login(t, raw)
		assertBadCredential(t, p, err)
		if got := c.teamsOf(t, known.ID); got != "web" {
			t.Errorf("%s: teams %q", name, got)
		}
	}
}

// The sign of an overage is about the claim that is configured.
func TestOIDCOverageOfAnotherClaim(t *testing.T) {
	t.Parallel()
	s := SignIn{Admission: AdmitClaim, Claim: "roles"}
	c := newClaimsServer(t, openSQLite(t))
	s.Claims = c.oidc.signIn.Claims
	c.withSignIn(s)
	c.mustLogin(t, c.token(t, "roles", "sec"))
	p := c.mustLogin(t, c.token(t, append(distributed("groups"), "hasgroups", true)...))
	if len(p.Grants) != 0 {
		t.Errorf("got %+v", p.Grants)
	}
	for _, admission := range []Admission{AdmitInvited, AdmitDomain, AdmitAny} {
		s.Admission = admission
		if got := s.gap(map[string]json.RawMessage{"roles": json.RawMessage("7")}); got != gapNone {
			t.Errorf("%s: %q", admission, got)
		}
	}
}

// A known user who is no member reads why the token does not help. The log has one line for each token.
func TestOIDCOverageOfAFormerMember(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		c := newClaimsServer(t, st)
		c.mustLogin(t, c.token(t, "groups", "dev"))
		c.mustLogin(t, c.token(t, "groups", []string{}))
		if lines := c.logged(); len(lines) != 0 {
			t.Errorf("a member who is no administrator leaves: %q", lines)
		}
		for _, subject := range []string{"alice-1", "new"} {
			raw := c.token(t, append(distributed("groups"), "sub", subject)...)
			for range 3 {
				_, err := c.login(t, raw)
				assertReason(t, err, denied)
				if !strings.Contains(statusText(err), "(overage)") || !strings.Contains(statusText(err), "assign fewer groups") {
					t.Errorf("%s reads %q", subject, statusText(err))
				}
			}
			if lines := c.logged(); !oneLine(lines, "subject="+subject, "assign fewer groups") {
				t.Errorf("the log: %q", lines)
			}
		}
		// An older token restores nothing, as always.
		old := c.idp.idToken(t, c.clock.now().Add(-3*time.Minute/2), map[string]any{"groups": "dev"})
		if p := c.mustLogin(t, old); len(p.Grants) != 0 {
			t.Errorf("an older token gives %+v", p.Grants)
		}
		p := c.mustLogin(t, c.token(t, append(distributed("groups"), "groups", "dev")...))
		if len(p.Grants) != 1 || p.Grants[0].Role != RoleMember {
			t.Errorf("what a token lists counts: %+v", p.Grants)
		}
	})
}

// The log says when claims take the role of the last administrator, and is silent while there is another.
func TestOIDCLastAdministrator(t *testing.T) {
	t.Parallel()
	for name, groups := range map[string][]string{"leaves": {}, "falls": {"dev"}} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(t *testing.T, st *store.Store) {
				c := newClaimsServer(t, st)
				for _, subject := range []string{"alice-1", "bob-1"} {
					c.mustLogin(t, c.token(t, "groups", "sec", "sub", subject))
				}
				c.mustLogin(t, c.token(t, "groups", groups))
				if lines := c.logged(); len(lines) != 0 {
					t.Errorf("bob is left: %q", lines)
				}
				c.mustLogin(t, c.token(t, "groups", groups, "sub", "bob-1"))
				lines := c.logged()
				if !oneLine(lines, "the last administrator lost the role", "deployment=acme") {
					t.Errorf("the log: %q", lines)
				}
			})
		})
	}
}
