package console_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// startWithProvider starts a server with a client at a provider. Ada is invited.
func startWithProvider(t *testing.T, on func(*config.Config)) (*apitest.Server, *provider) {
	t.Helper()
	p := newProvider(t)
	s := apitest.Start(t, func(c *config.Config) {
		on(c)
		c.OIDCIssuer, c.OIDCAudience, c.OIDCClientID, c.OIDCClientSecret = p.URL, "palisade", clientID, clientSecret
	})
	admin, err := services.MintJWT(t.Context(), s.Config, "admin@localhost", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s.Body(t, admin, http.MethodPost, fmt.Sprintf("/api/onboarding/deployments/%d/invite_members", s.DeploymentID), `{"emails":["ada@acme.test"]}`, http.StatusOK)
	return s, p
}

// The code flow with PKCE signs a person in who may become a member, and returns to the page where they were.
func TestSignInWithTheIssuer(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s, p := startWithProvider(t, on)
		b := newBrowser(t, s)
		if got := b.get("/auth/options").Body; strings.TrimSpace(got) != `{"issuer":"`+p.URL+`"}` {
			t.Errorf("the options are %s", got)
		}
		begun := b.get("/auth/login?return=" + url.QueryEscape("/console/acme/triage?severity=high"))
		if begun.Status != http.StatusSeeOther || len(begun.cookies) != 1 {
			t.Fatalf("%d %v", begun.Status, begun.Header)
		}
		wantCookie(t, begun.cookies[0], "__Host-palisade-sign-in", true)
		back := p.authorize(t, begun.location())
		done := b.get("/auth/callback?" + back.Encode())
		if done.Status != http.StatusSeeOther || done.location() != "/console/acme/triage?severity=high" {
			t.Fatalf("%d %v %s", done.Status, done.Header, done.Body)
		}
		rows := sessions(t, s)
		if len(rows) != 1 {
			t.Fatalf("%d sessions", len(rows))
		}
		secret := b.cookies["__Host-palisade"]
		hash := sha256.Sum256([]byte(secret))
		row := rows[0]
		if len(secret) != 43 || string(row.Hash) != string(hash[:]) || row.Method != "oidc" || row.Address != "127.0.0.1" ||
			row.Agent != "Test/1.0 (Browser)" || row.RevokedAt != nil || row.CreatedAt != row.LastUsedAt {
			t.Errorf("the session is %+v", row)
		}
		for _, c := range done.cookies {
			if c.Name == "__Host-palisade" {
				wantCookie(t, c, "__Host-palisade", true)
			}
		}
		if _, kept := b.cookies["__Host-palisade-sign-in"]; kept {
			t.Error("the attempt was not deleted")
		}
		me := b.get("/api/auth/users/current")
		if me.Status != http.StatusOK || !strings.Contains(me.Body, `"email":"ada@acme.test"`) || !strings.Contains(me.Body, `"orgRole":"ORG_ROLE_MEMBER"`) {
			t.Errorf("the user is %d %s", me.Status, me.Body)
		}
		entry := s.Store.Reader.AuditEntry.Query().Where(auditentry.Method("console/sign-in")).OnlyX(tenant.NewContext(t.Context(), s.DeploymentID))
		if entry.ActorName != "ada@acme.test" || entry.ActorKind != "user" || entry.Remote != "127.0.0.1" || entry.Code != "OK" || len(entry.Changes) != 1 {
			t.Errorf("the audit entry is %+v", entry)
		}
	})
}

// wantCookie requires the attributes of a cookie, over TLS or on this machine.
func wantCookie(t *testing.T, c *http.Cookie, name string, secure bool) {
	t.Helper()
	if c.Name != name || !c.HttpOnly || c.Secure != secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge <= 0 {
		t.Errorf("the cookie is %s", c)
	}
}

// refusedSignIns are answers of a provider that sign nobody in.
var refusedSignIns = []struct {
	name   string
	claims jwt.MapClaims
	change func(p *provider, b *browser, back url.Values)
	status int
	text   string
}{
	{"another state", nil, func(_ *provider, _ *browser, back url.Values) { back.Set("state", strings.Repeat("x", 43)) }, 400, "This sign-in is not valid"},
	{"no state", nil, func(_ *provider, _ *browser, back url.Values) { back.Del("state") }, 400, "This sign-in is not valid"},
	{"another browser", nil, func(_ *provider, b *browser, _ url.Values) { clear(b.cookies) }, 400, "This sign-in has expired"},
	{"a foreign cookie", nil, func(_ *provider, b *browser, _ url.Values) { b.cookies["__Host-palisade-sign-in"] = "AAAA" }, 400, "This sign-in has expired"},
	{"another code", nil, func(_ *provider, _ *browser, back url.Values) { back.Set("code", "x") }, 400, "This sign-in is not valid"},
	{"no code", nil, func(_ *provider, _ *browser, back url.Values) { back.Del("code") }, 400, "This sign-in is not valid"},
	{"an answer of another issuer", nil, func(_ *provider, _ *browser, back url.Values) { back.Set("iss", "https://evil.example") }, 400, "This sign-in is not valid"},
	{"another nonce", jwt.MapClaims{"nonce": "x"}, nil, 400, "This sign-in is not valid"},
	{"no nonce", jwt.MapClaims{"nonce": ""}, nil, 400, "This sign-in is not valid"},
	{"a token of another issuer", jwt.MapClaims{"iss": "https://evil.example"}, nil, 400, "This sign-in is not valid"},
	{"a token for another client", jwt.MapClaims{"aud": "palisade"}, nil, 400, "This sign-in is not valid"},
	{"a token for two clients", jwt.MapClaims{"aud": []string{clientID, "other"}}, nil, 400, "This sign-in is not valid"},
	{"an expired token", jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()}, nil, 400, "This sign-in is not valid"},
	{"cancelled", nil, func(_ *provider, _ *browser, back url.Values) {
		back.Del("code")
		back.Set("error", "access_denied")
		back.Set("error_description", "<b>not today</b>")
	}, 403, "It says: access_denied: &lt;b&gt;not today&lt;/b&gt;"},
	{"an error of the provider", nil, func(_ *provider, _ *browser, back url.Values) { back.Set("error", "server_error") }, 502, "The identity provider reports an error"},
	{"a provider that is down", nil, func(p *provider, _ *browser, _ url.Values) { p.set(func() { p.down = true }) }, 502, "The identity provider does not answer"},
	{"somebody who is not invited", jwt.MapClaims{"sub": "eve", "email": "eve@acme.test"}, nil, 403, "ask an administrator to invite eve@acme.test"},
	{"an unverified address", jwt.MapClaims{"sub": "eve", "email_verified": false}, nil, 403, "must first have verified"},
}

func TestSignInsThatAreRefused(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s, p := startWithProvider(t, on)
		for _, c := range refusedSignIns {
			t.Run(c.name, func(t *testing.T) {
				b := newBrowser(t, s)
				back := p.authorize(t, b.get("/auth/login").location())
				p.set(func() { p.claims, p.down = c.claims, false })
				if c.change != nil {
					c.change(p, b, back)
				}
				got := b.get("/auth/callback?" + back.Encode())
				got.wantPage(t, c.status, c.text)
				if len(b.cookies) != 0 || len(sessions(t, s)) != 0 {
					t.Errorf("cookies %v, sessions %v", b.cookies, sessions(t, s))
				}
			})
		}
	})
}

// An attempt is used up by its answer. Somebody who has copied both finds that the code is used up, too.
func TestReplayedSignIn(t *testing.T) {
	s, p := startWithProvider(t, func(*config.Config) {})
	b := newBrowser(t, s)
	back := p.authorize(t, b.get("/auth/login").location())
	copied := newBrowser(t, s)
	copied.cookies["__Host-palisade-sign-in"] = b.cookies["__Host-palisade-sign-in"]
	if got := b.get("/auth/callback?" + back.Encode()); got.Status != http.StatusSeeOther || got.location() != "/console/" {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	delete(b.cookies, "__Host-palisade")
	b.get("/auth/callback?"+back.Encode()).wantPage(t, http.StatusBadRequest, "This sign-in has expired")
	copied.get("/auth/callback?"+back.Encode()).wantPage(t, http.StatusBadRequest, "was used before")
	if n := len(sessions(t, s)); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// An issuer that announces its name in answers must name itself.
func TestAnswerWithoutTheIssuer(t *testing.T) {
	p := newProvider(t)
	p.names = true
	s := apitest.Start(t, func(c *config.Config) {
		c.OIDCIssuer, c.OIDCAudience, c.OIDCClientID, c.OIDCClientSecret, c.OIDCMembership = p.URL, "palisade", clientID, clientSecret, "any"
	})
	b := newBrowser(t, s)
	back := p.authorize(t, b.get("/auth/login").location())
	b.get("/auth/callback?"+back.Encode()).wantPage(t, http.StatusBadRequest, "This sign-in is not valid")
	back = p.authorize(t, b.get("/auth/login").location())
	back.Set("iss", p.URL)
	if got := b.get("/auth/callback?" + back.Encode()); got.Status != http.StatusSeeOther {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}

// A person returns to paths of this server only.
func TestReturnPaths(t *testing.T) {
	s, p := startWithProvider(t, func(*config.Config) {})
	for path, want := range map[string]string{
		"":                                      "/console/",
		"/console/acme/triage?q=a%20b#x":        "/console/acme/triage?q=a%20b#x",
		"/login?cli-token=1":                    "/login?cli-token=1",
		"https://evil.example/":                 "/console/",
		"//evil.example/":                       "/console/",
		`/\evil.example`:                        "/console/",
		`\\evil.example`:                        "/console/",
		"/\t/evil.example":                      "/console/",
		"console":                               "/console/",
		"javascript:alert(1)":                   "/console/",
		"/console/" + strings.Repeat("x", 3000): "/console/",
	} {
		b := newBrowser(t, s)
		back := p.authorize(t, b.get("/auth/login?return="+url.QueryEscape(path)).location())
		if got := b.get("/auth/callback?" + back.Encode()); got.Status != http.StatusSeeOther || got.location() != want {
			t.Errorf("%q leads to %d %q, want %q", path, got.Status, got.location(), want)
		}
	}
}

// Without a client at the issuer, the page says what to do, and no sign-in begins.
func TestSignInWithoutAnIssuer(t *testing.T) {
	s := apitest.Start(t, nil)
	b := newBrowser(t, s)
	b.get("/auth/login").wantPage(t, http.StatusNotFound, "palisade console-link")
	b.get("/auth/callback?code=x&state=y").wantPage(t, http.StatusBadRequest, "This sign-in has expired")
	if got := b.get("/auth/options").Body; strings.TrimSpace(got) != `{"issuer":""}` {
		t.Errorf("the options are %s", got)
	}
}

// An issuer that cannot be reached does not stop the server, and the sign-in works when it is back.
func TestSignInWhileTheIssuerIsDown(t *testing.T) {
	p := newProvider(t)
	address := p.Listener.Addr().String()
	p.Close()
	s := apitest.Start(t, func(c *config.Config) {
		c.OIDCIssuer, c.OIDCAudience, c.OIDCClientID = "http://"+address, "palisade", clientID
	})
	newBrowser(t, s).get("/auth/login").wantPage(t, http.StatusBadGateway, "The identity provider does not answer")
}
