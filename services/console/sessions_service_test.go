package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/session"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

type shownSession struct {
	ID                               int64
	Current                          bool
	Method, Address, Agent           string
	CreatedAt, LastUsedAt, ExpiresAt string
}

// list returns the sessions in an answer.
func (a answer) list(t *testing.T) (list []shownSession) {
	t.Helper()
	var body struct{ Sessions []shownSession }
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil || a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return body.Sessions
}

func idOf(t *testing.T, s *apitest.Server, email string) int64 {
	t.Helper()
	return s.Store.Reader.User.Query().Where(user.Email(email)).OnlyX(s.System(t)).ID
}

// A user sees and revokes their own sessions, over both wires.
func TestMySessions(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, on)
		token := s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleReadOnly)
		s.AddUser(t, s.Tenant, "eve@acme.test", access.RoleMember)
		office, home, lost := newBrowser(t, s).signInAs("ada@acme.test"), newBrowser(t, s).signInAs("ada@acme.test"), newBrowser(t, s).signInAs("ada@acme.test")
		eve := newBrowser(t, s).signInAs("eve@acme.test")
		seen := office.get("/api/v1/sessions").list(t)
		if len(seen) != 3 || !seen[2].Current || seen[0].Current || seen[1].Current || seen[0].ID <= seen[1].ID {
			t.Fatalf("the sessions are %+v", seen)
		}
		one := seen[0]
		if one.Method != "SIGN_IN_METHOD_CONSOLE_LINK" || one.Address != "127.0.0.1" || one.Agent != "Test/1.0 (Browser)" || one.CreatedAt == "" || one.ExpiresAt <= one.LastUsedAt {
			t.Errorf("a session is %+v", one)
		}
		client := identityv1.NewSessionsServiceClient(s.Conn)
		list, err := client.ListSessions(s.Context(t, token), &identityv1.ListSessionsRequest{})
		if err != nil || len(list.GetSessions()) != 3 || slices.ContainsFunc(list.GetSessions(), (*identityv1.Session).GetCurrent) {
			t.Errorf("with a token: %v, %v", list, err)
		}
		for _, b := range []*browser{eve, office} { // somebody else's, and one that does not exist
			if got := b.do(http.MethodDelete, fmt.Sprintf("/api/v1/sessions/%d", map[bool]int64{true: one.ID, false: 999}[b == eve]), nil); got.Status != http.StatusNotFound {
				t.Errorf("%d %s", got.Status, got.Body)
			}
		}
		if got := office.do(http.MethodDelete, fmt.Sprintf("/api/v1/sessions/%d", one.ID), nil); got.Status != http.StatusOK || got.Body != fmt.Sprintf(`{"sessionId":%d}`, one.ID) {
			t.Errorf("revoking: %d %s", got.Status, got.Body)
		}
		checkAlive(t, lost, false)
		checkAlive(t, home, true)
		if got := office.do(http.MethodDelete, fmt.Sprintf("/api/v1/sessions/%d", one.ID), nil); got.Status != http.StatusNotFound {
			t.Errorf("revoking again: %d %s", got.Status, got.Body)
		}
		if got := office.do(http.MethodDelete, "/api/v1/sessions", nil); got.Body != `{"revokedCount":1}` {
			t.Errorf("revoking the others: %d %s", got.Status, got.Body)
		}
		checkAlive(t, home, false)
		checkAlive(t, office, true)
		checkAlive(t, eve, true)
		if _, err := client.RevokeOtherSessions(s.Context(t, s.Token), &identityv1.RevokeOtherSessionsRequest{}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("an API token has no sessions: %v", err)
		}
		if all, err := client.RevokeOtherSessions(s.Context(t, token), &identityv1.RevokeOtherSessionsRequest{}); err != nil || all.GetRevokedCount() != 1 {
			t.Errorf("with a token: %v, %v", all, err)
		}
		checkAlive(t, office, false)
		entries := s.Store.Reader.AuditEntry.Query().Where(auditentry.ActorName("ada@acme.test"), auditentry.MethodContains("SessionsService")).
			Order(ent.Asc(auditentry.FieldID)).AllX(tenant.NewContext(t.Context(), s.DeploymentID))
		var got []string
		for _, e := range entries {
			got = append(got, fmt.Sprint(e.Method[strings.LastIndexByte(e.Method, '/')+1:], " ", e.Code, " ", len(e.Changes)))
		}
		want := []string{"RevokeSession NotFound 0", "RevokeSession OK 1", "RevokeSession NotFound 0", "RevokeOtherSessions OK 1", "RevokeOtherSessions OK 1"}
		if !slices.Equal(got, want) {
			t.Errorf("the audit entries are %q, want %q", got, want)
		}
	})
}

// An administrator sees and revokes the sessions of members, and of nobody else.
func TestMemberSessions(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, on)
		globex := s.AddTenant(t, "globex")
		boss := s.AddUser(t, s.Tenant, "boss@acme.test", access.RoleAdmin)
		s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleMember)
		phone, laptop := newBrowser(t, s).signInAs("ada@acme.test"), newBrowser(t, s).signInAs("ada@acme.test")
		foreign := newBrowser(t, s).signInAs("admin@globex.test")
		path := fmt.Sprintf("/api/v1/deployments/%d/users/%d/sessions", s.DeploymentID, idOf(t, s, "ada@acme.test"))
		for _, token := range []string{boss, s.Token} {
			seen := answer{Answer: s.Do(t, token, http.MethodGet, path, "")}.list(t)
			if len(seen) != 2 || seen[0].Current || seen[1].Current {
				t.Errorf("the sessions are %+v", seen)
			}
		}
		if got := phone.get(path); got.Status != http.StatusForbidden {
			t.Errorf("a member: %d %s", got.Status, got.Body)
		}
		other := fmt.Sprintf("/api/v1/deployments/%d/users/%d/sessions", s.DeploymentID, idOf(t, s, "admin@globex.test"))
		for _, call := range []struct{ token, method, path string }{
			{boss, http.MethodGet, other}, {boss, http.MethodDelete, other}, {globex.Token, http.MethodGet, path}, {globex.Token, http.MethodDelete, path},
			{boss, http.MethodDelete, path + "?sessionId=999"}, {boss, http.MethodDelete, fmt.Sprintf("%s?sessionId=%d", path, foreign.get("/api/v1/sessions").list(t)[0].ID)},
		} {
			if got := s.Do(t, call.token, call.method, call.path, ""); got.Status != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", call.method, call.path, got.Status, got.Body)
			}
		}
		checkAlive(t, foreign, true)
		newest := phone.get("/api/v1/sessions").list(t)[0].ID
		if got := s.Body(t, boss, http.MethodDelete, fmt.Sprintf("%s?sessionId=%d", path, newest), "", http.StatusOK); got != `{"revokedCount":1}` {
			t.Errorf("one: %s", got)
		}
		checkAlive(t, laptop, false)
		checkAlive(t, phone, true)
		client := identityv1.NewSessionsServiceClient(s.Conn)
		all, err := client.RevokeMemberSessions(s.Context(t, s.Token), &identityv1.RevokeMemberSessionsRequest{DeploymentId: s.DeploymentID, UserId: idOf(t, s, "ada@acme.test")})
		if err != nil || all.GetRevokedCount() != 1 {
			t.Errorf("all: %v, %v", all, err)
		}
		checkAlive(t, phone, false)
		entries := s.Store.Reader.AuditEntry.Query().Where(auditentry.MethodHasSuffix("RevokeMemberSessions"), auditentry.Code("OK")).
			AllX(tenant.NewContext(t.Context(), s.DeploymentID))
		if len(entries) != 2 || len(entries[0].Changes) != 1 || len(entries[1].Changes) != 1 {
			t.Errorf("the audit entries are %v", entries)
		}
	})
}

// Removing a member ends their sessions, with the removal's audit entry.
func TestRemovedMember(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, on)
		s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleMember)
		ada, admin := newBrowser(t, s).signInAs("ada@acme.test"), newBrowser(t, s).signInAs("admin@localhost")
		path := fmt.Sprintf("/api/agent/deployments/%d/users/%d", s.DeploymentID, idOf(t, s, "ada@acme.test"))
		if got := admin.do(http.MethodDelete, path, nil); got.Status != http.StatusOK {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		checkAlive(t, ada, false)
		checkAlive(t, admin, true)
		entry := s.Store.Reader.AuditEntry.Query().Where(auditentry.MethodHasSuffix("RemoveDeploymentUser"), auditentry.Code("OK")).OnlyX(tenant.NewContext(t.Context(), s.DeploymentID))
		kinds := ""
		for _, c := range entry.Changes {
			kinds += c.Kind + " "
		}
		if !strings.Contains(kinds, "session ") || !strings.Contains(kinds, "deployment_user ") {
			t.Errorf("the entry has changes of %s", kinds)
		}
	})
}

// A claim that is gone ends the membership and, with it, the sessions.
func TestSessionsOfFormerUsers(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		p := newProvider(t)
		s := apitest.Start(t, func(c *config.Config) {
			on(c)
			c.OIDCIssuer, c.OIDCAudience, c.OIDCClientID, c.OIDCClientSecret = p.URL, "palisade", clientID, clientSecret
			c.OIDCMembership, c.OIDCClaim, c.OIDCClaimMap = "claim", "groups", "dev=member"
		})
		signIn := func(b *browser, groups ...string) answer {
			p.set(func() { p.claims = map[string]any{"groups": groups} })
			return b.get("/auth/callback?" + p.authorize(t, b.get("/auth/login").location()).Encode())
		}
		first, second := newBrowser(t, s), newBrowser(t, s)
		if got := signIn(first, "dev"); got.Status != http.StatusSeeOther {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		// The next token must be newer: its issue time has whole seconds.
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.User.Update().Where(user.Subject("ada-1")).SetClaimsAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		signIn(second).wantPage(t, http.StatusForbidden, "belongs to no organization here")
		checkAlive(t, first, false)
		if n := s.Store.Reader.Session.Query().Where(session.RevokedAtIsNil()).CountX(s.System(t)); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}

// Regression: a sign-in whose token leaves the groups out, because they are too many, ended the membership and with it
// all sessions.
func TestSessionsOutliveTooManyGroups(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		p := newProvider(t)
		s := apitest.Start(t, func(c *config.Config) {
			on(c)
			c.OIDCIssuer, c.OIDCAudience, c.OIDCClientID, c.OIDCClientSecret = p.URL, "palisade", clientID, clientSecret
			c.OIDCMembership, c.OIDCClaim, c.OIDCClaimMap = "claim", "groups", "dev=member"
		})
		issued := time.Now().Add(-time.Hour)
		signIn := func(b *browser, claims map[string]any) answer {
			issued = issued.Add(time.Minute)
			claims["iat"] = issued.Unix()
			p.set(func() { p.claims = claims })
			return b.get("/auth/callback?" + p.authorize(t, b.get("/auth/login").location()).Encode())
		}
		overage := func() map[string]any {
			source := map[string]any{"endpoint": "https://graph.example/groups"}
			return map[string]any{
				"_claim_names": map[string]any{"groups": "src1"}, "_claim_sources": map[string]any{"src1": source},
			}
		}
		first, second := newBrowser(t, s), newBrowser(t, s)
		for _, got := range []answer{signIn(first, map[string]any{"groups": []string{"dev"}}), signIn(second, overage())} {
			if got.Status != http.StatusSeeOther {
				t.Fatalf("%d %s", got.Status, got.Body)
			}
		}
		checkAlive(t, first, true)
		checkAlive(t, second, true)
		stranger := overage()
		stranger["sub"], stranger["email"] = "eve", "eve@acme.test"
		signIn(newBrowser(t, s), stranger).wantPage(t, http.StatusForbidden, "assign fewer groups to the application")
		signIn(newBrowser(t, s), map[string]any{"groups": []string{}}).wantPage(t, http.StatusForbidden, "belongs to no organization here")
		signIn(newBrowser(t, s), overage()).wantPage(t, http.StatusForbidden, "assign fewer groups to the application")
	})
}
