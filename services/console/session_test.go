package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/session"
	"github.com/palisade/palisade/ent/tenant"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/console"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	mine   = "/api/auth/users/current"
	cookie = "__Host-palisade"
)

// change changes the rows of sessions.
func change(t *testing.T, s *apitest.Server, set func(*ent.SessionUpdate)) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		update := tx.Session.Update()
		set(update)
		return update.Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func ago(d time.Duration) int64 { return store.Micros(time.Now().Add(-d)) }

// A session ends after the idle time, at its age, and when it is revoked; each from the next request on, with one text.
func TestSessionsEnd(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) {
			on(c)
			c.SessionIdle, c.SessionLifetime = 10*time.Minute, time.Hour
		})
		for name, c := range map[string]struct {
			set   func(*ent.SessionUpdate)
			alive bool
		}{
			"just before the idle time": {func(u *ent.SessionUpdate) { u.SetLastUsedAt(ago(9 * time.Minute)) }, true},
			"after the idle time":       {func(u *ent.SessionUpdate) { u.SetLastUsedAt(ago(11 * time.Minute)) }, false},
			"revoked":                   {func(u *ent.SessionUpdate) { u.SetRevokedAt(ago(0)) }, false},
		} {
			t.Run(name, func(t *testing.T) {
				b := newBrowser(t, s).signInAs("admin@localhost")
				change(t, s, c.set)
				checkAlive(t, b, c.alive)
			})
		}
		t.Run("after its lifetime", func(t *testing.T) {
			b := newBrowser(t, s).signInAs("admin@localhost")
			old := newBrowser(t, s)
			old.cookies[cookie] = b.cookies[cookie]
			agedBy(t, s, 59*time.Minute)
			checkAlive(t, old, true)
			agedBy(t, s, 2*time.Minute)
			checkAlive(t, old, false)
		})
		t.Run("unknown", func(t *testing.T) {
			for _, value := range []string{"x", strings.Repeat("A", 43), strings.Repeat("A", 5000)} {
				b := newBrowser(t, s)
				b.cookies[cookie] = value
				checkAlive(t, b, false)
			}
		})
	})
}

// agedBy makes all sessions older, and used just now. The time of the sign-in never changes otherwise.
func agedBy(t *testing.T, s *apitest.Server, by time.Duration) {
	t.Helper()
	_, writer := s.Store.DB()
	_, err := writer.ExecContext(t.Context(), "UPDATE sessions SET created_at = created_at - $1, last_used_at = $2", by.Microseconds(), ago(0))
	if err != nil {
		t.Fatal(err)
	}
}

func checkAlive(t *testing.T, b *browser, alive bool) {
	t.Helper()
	got := b.get(mine)
	switch {
	case alive && got.Status != http.StatusOK:
		t.Errorf("got %d %s", got.Status, got.Body)
	case !alive && (got.Status != http.StatusUnauthorized || !strings.Contains(got.Body, `"message":"the session has ended: sign in again"`)):
		t.Errorf("got %d %s", got.Status, got.Body)
	}
}

// A use is stored within seconds, but at most once a minute. A stream of events is no use.
func TestLastUse(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, on)
		b := newBrowser(t, s).signInAs("admin@localhost")
		recent := ago(time.Second)
		change(t, s, func(u *ent.SessionUpdate) { u.SetLastUsedAt(recent) })
		b.get(mine)
		time.Sleep(6 * time.Second) // longer than uses are collected
		if got := sessions(t, s)[0].LastUsedAt; got != recent {
			t.Errorf("a recent use was replaced: %d, want %d", got, recent)
		}
		old := ago(2 * time.Minute)
		change(t, s, func(u *ent.SessionUpdate) { u.SetLastUsedAt(old) })
		b.get("/api/v1/deployments/1/findings/changes")
		time.Sleep(6 * time.Second)
		if got := sessions(t, s)[0].LastUsedAt; got != old {
			t.Errorf("a stream of events counts as a use")
		}
		b.get(mine)
		apitest.Eventually(t, "the use is stored", func() bool { return sessions(t, s)[0].LastUsedAt > old })
	})
}

// The gRPC port knows no cookies, whatever the metadata is called.
func TestCookiesOnTheGRPCPort(t *testing.T) {
	s := apitest.Start(t, nil)
	b := newBrowser(t, s).signInAs("admin@localhost")
	client := identityv1.NewUsersServiceClient(s.Conn)
	for _, name := range []string{"cookie", "grpcgateway-cookie", "authorization", "session"} {
		for _, value := range []string{cookie + "=" + b.cookies[cookie], b.cookies[cookie], "Bearer " + b.cookies[cookie]} {
			_, err := client.GetUser(metadata.AppendToOutgoingContext(t.Context(), name, value), &identityv1.GetUserRequest{})
			if status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s: %s: %v", name, value, err)
			}
		}
	}
}

// A header decides alone: a wrong one is not replaced by the cookie, and a right one is not limited by it.
func TestCookieBesideAHeader(t *testing.T) {
	s := apitest.Start(t, nil)
	b := newBrowser(t, s).signInAs("admin@localhost")
	for header, want := range map[string]int{"Bearer sgp_wrong": 401, "Basic eDp5": 401, "": 401, "Bearer " + s.Token: 403} {
		if got := b.get(mine, "Authorization", header); got.Status != want { // an API token is no user
			t.Errorf("%q: %d %s", header, got.Status, got.Body)
		}
	}
	secret := b.cookies[cookie]
	got := b.do(http.MethodPatch, "/api/agent/deployments/1", strings.NewReader(`{"name":"Acme"}`), "Authorization", "Bearer "+s.Token, "Sec-Fetch-Site", "cross-site")
	if got.Status != http.StatusOK {
		t.Errorf("a token with the cookie of a session: %d %s", got.Status, got.Body)
	}
	for _, value := range []string{secret, cookie + "=" + secret} {
		if got := newBrowser(t, s).get(mine, "Authorization", "Bearer "+value); got.Status != http.StatusUnauthorized {
			t.Errorf("the secret of a cookie as a token: %d", got.Status)
		}
	}
}

// Another site cannot make a browser change something. It can make it read, but not see the answer.
func TestOtherSites(t *testing.T) {
	s := apitest.Start(t, nil)
	b := newBrowser(t, s).signInAs("admin@localhost")
	send := func(method string, header ...string) int {
		return b.do(method, "/api/agent/deployments/1", strings.NewReader(`{"name":"Acme"}`), header...).Status
	}
	own := s.URL // the host that the request names
	for _, c := range []struct {
		header []string
		status int
	}{
		{[]string{"Sec-Fetch-Site", "same-origin", "Origin", own}, 200},
		{[]string{"Sec-Fetch-Site", "none"}, 200},
		{[]string{"Origin", own}, 200},
		{[]string{"Origin", "https://palisade.acme.test"}, 200}, // public-url, behind a proxy that changes the host
		{nil, 200}, // no browser
		{[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 403},
		{[]string{"Sec-Fetch-Site", "same-site", "Origin", "https://other.acme.test"}, 403},
		{[]string{"Origin", "https://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
	} {
		if got := send(http.MethodPatch, c.header...); got != c.status {
			t.Errorf("%v: %d, want %d", c.header, got, c.status)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		if got := send(method, "Sec-Fetch-Site", "cross-site"); got != http.StatusForbidden {
			t.Errorf("%s: %d", method, got)
		}
	}
	read := b.get(mine, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example")
	if read.Status != http.StatusOK || read.Header.Get("Access-Control-Allow-Origin") != "" || read.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("reading: %d %v", read.Status, read.Header)
	}
	for _, path := range []string{"/auth/logout", "/auth/link"} {
		if got := b.post(path, url.Values{}, "Sec-Fetch-Site", "cross-site"); got.Status != http.StatusForbidden {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
	checkAlive(t, b, true)
}

// A session is a user: rules, teams, limits and the audit trail hold as for a JSON Web Token of the same user.
func TestSessionsAreUsers(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, on)
		s.AddTenant(t, "globex")
		tokens := map[string]string{
			"admin": s.AddUser(t, s.Tenant, "boss@acme.test", access.RoleAdmin), "member": s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleMember),
			"reader": s.AddUser(t, s.Tenant, "eve@acme.test", access.RoleReadOnly),
		}
		emails := map[string]string{"admin": "boss@acme.test", "member": "ada@acme.test", "reader": "eve@acme.test"}
		for who, token := range tokens {
			b := newBrowser(t, s).signInAs(emails[who])
			for _, call := range []struct{ method, path, body string }{
				{http.MethodGet, mine, ""},
				{http.MethodGet, "/api/v1/deployments", ""},
				{http.MethodGet, "/api/v1/deployments/acme/projects", ""},
				{http.MethodGet, "/api/v1/deployments/globex/projects", ""},
				{http.MethodPost, "/api/v1/deployments/acme/triage", `{"issue_type":"sast","issue_ids":[1],"new_triage_state":"ignored"}`},
				{http.MethodPatch, "/api/agent/deployments/1", `{"name":"Acme"}`},
				{http.MethodGet, "/api/policies/v2/deployments/1/remediation-policies", ""}, // API tokens only
			} {
				want := s.Do(t, token, call.method, call.path, call.body)
				got := b.do(call.method, call.path, strings.NewReader(call.body))
				if got.Status != want.Status || withoutID(got.Body) != withoutID(want.Body) {
					t.Errorf("%s %s as %s: %d %s\nwant %d %s", call.method, call.path, who, got.Status, got.Body, want.Status, want.Body)
				}
			}
		}
		rows := s.Store.Reader.AuditEntry.Query().Where(auditentry.ActorName("boss@acme.test"), auditentry.MethodHasSuffix("UpdateDeployment")).
			Order(ent.Asc(auditentry.FieldID)).AllX(tenant.NewContext(t.Context(), s.DeploymentID))
		if len(rows) != 2 || rows[0].ActorKind != rows[1].ActorKind || rows[0].ActorID != rows[1].ActorID || rows[0].Remote != rows[1].Remote {
			t.Errorf("the audit entries with a token and in a session are %+v", rows)
		}
	})
}

// withoutID drops what differs between two answers to the same request.
func withoutID(body string) string {
	text, _, _ := strings.Cut(body, `"requestId"`)
	return text
}

// Signing out revokes the session and deletes the cookie, and repeating it changes nothing.
func TestSignOut(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, on)
		b := newBrowser(t, s).signInAs("admin@localhost")
		copied := newBrowser(t, s)
		copied.cookies[cookie] = b.cookies[cookie]
		for range 2 {
			if got := b.post("/auth/logout", nil); got.Status != http.StatusNoContent || len(b.cookies) != 0 {
				t.Errorf("%d %v", got.Status, b.cookies)
			}
		}
		checkAlive(t, copied, false)
		entries := s.Store.Reader.AuditEntry.Query().Where(auditentry.Method("console/sign-out")).AllX(tenant.NewContext(t.Context(), s.DeploymentID))
		if len(entries) != 1 || entries[0].ActorName != "admin@localhost" || len(entries[0].Changes) != 1 {
			t.Errorf("the audit entries are %v", entries)
		}
		if got := copied.get("/auth/logout"); got.Status != http.StatusNotFound {
			t.Errorf("a GET signs out: %d", got.Status)
		}
	})
}

// Signing in again in the same browser ends its earlier session, and the 101st session of a user the oldest.
func TestSessionsOfOneUser(t *testing.T) {
	s := apitest.Start(t, nil)
	b := newBrowser(t, s).signInAs("admin@localhost")
	old := newBrowser(t, s)
	old.cookies[cookie] = b.cookies[cookie]
	b.signInAs("admin@localhost")
	checkAlive(t, old, false)
	checkAlive(t, b, true)
	change(t, s, func(u *ent.SessionUpdate) { u.SetLastUsedAt(ago(time.Minute)) })
	for range access.MaxSessions - 1 {
		newBrowser(t, s).signInAs("admin@localhost")
	}
	checkAlive(t, b, true)
	newBrowser(t, s).signInAs("admin@localhost")
	checkAlive(t, b, false)
	if n := s.Store.Reader.Session.Query().Where(session.RevokedAtIsNil()).CountX(s.System(t)); n != access.MaxSessions {
		t.Errorf("%d sessions are left", n)
	}
}

// Ended sessions and expired links are deleted. Revoked sessions stay until they would have ended.
func TestEndedSessionsAreDeleted(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.Roles = "api" }) // its own job would be faster
		for range 4 {
			newBrowser(t, s).signInAs("admin@localhost")
		}
		rows := sessions(t, s)
		change(t, s, func(u *ent.SessionUpdate) { u.Where(session.ID(rows[0].ID)).SetLastUsedAt(ago(9 * time.Hour)) })
		change(t, s, func(u *ent.SessionUpdate) { u.Where(session.ID(rows[1].ID)).SetRevokedAt(ago(0)) })
		_, writer := s.Store.DB()
		if _, err := writer.ExecContext(t.Context(), "UPDATE sessions SET created_at = $1 WHERE id = $2", ago(25*time.Hour), rows[2].ID); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := services.NewConsoleLink(t.Context(), s.Config, "admin@localhost"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := writer.ExecContext(t.Context(), "UPDATE console_links SET expires_at = $1 WHERE id = (SELECT MIN(id) FROM console_links)", ago(0)); err != nil {
			t.Fatal(err)
		}
		links := s.Store.Reader.ConsoleLink.Query().CountX(s.System(t))
		if err := console.DeleteEnded(t.Context(), s.Store, s.Config); err != nil {
			t.Fatal(err)
		}
		left := sessions(t, s)
		if len(left) != 2 || left[0].ID != rows[1].ID || left[1].ID != rows[3].ID {
			t.Errorf("left are %v", left)
		}
		if n := s.Store.Reader.ConsoleLink.Query().CountX(s.System(t)); n != links-1 {
			t.Errorf("%d of %d links are left", n, links)
		}
	})
}
