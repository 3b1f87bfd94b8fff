package access

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/invitation"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/teammember"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/internal/store"
)

// withSignIn changes the admission policy of the server.
func (s *server) withSignIn(signIn SignIn) *server {
	s.oidc.signIn = signIn
	return s
}

func (s *server) users(t *testing.T) int {
	t.Helper()
	return s.st.Reader.User.Query().CountX(tenant.System(t.Context()))
}

func (s *server) invite(t *testing.T, deploymentID int64, email string) {
	t.Helper()
	write(t, s.st, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Invitation.Create().SetDeploymentID(deploymentID).SetEmail(email).SetInvitedBy(1).SetCreatedAt(store.Now()).Exec(ctx)
	})
}

// Regression: every unknown user of the issuer became a member, and with the default role of a deployment an
// administrator.
func TestOIDCUnknownUsersAreRefused(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		idp := newProvider(t)
		s := newServer(t, st).withOIDC(t, idp).withSignIn(SignIn{})
		for name, changes := range map[string]map[string]any{
			"verified": nil, "unverified": {"email_verified": false}, "without an address": {"email": nil}, "says admin": {"role": "ORG_ROLE_ADMIN", "groups": []string{"admin"}},
		} {
			p, err := s.login(t, idp.idToken(t, s.clock.now(), changes))
			assertReason(t, err, denied)
			if p != nil || !strings.Contains(statusText(err), "ask an administrator to invite") {
				t.Errorf("%s: %+v, %v", name, p, err)
			}
		}
		if got := s.users(t); got != 1 {
			t.Errorf("%d users are stored", got)
		}
		if got := st.Reader.Deployment.GetX(tenant.System(t.Context()), s.first.Deployment.ID).DefaultRole; got != string(RoleMember) {
			t.Errorf("a new deployment has the default role %s", got)
		}
		admin := s.mustLogin(t, s.mint(t, time.Hour))
		if admin.Name != AdminEmail || admin.Grants[0].Role != RoleAdmin {
			t.Errorf("the first administrator is %+v", admin)
		}
	})
}

func TestOIDCInvitedPeopleJoin(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		idp := newProvider(t)
		s := newServer(t, st).withOIDC(t, idp).withSignIn(SignIn{Admission: AdmitInvited})
		var later *ent.Deployment
		write(t, st, func(ctx context.Context, tx *ent.Tx) (err error) {
			if later, err = tx.Deployment.Create().SetSlug("later").SetName("Later").SetDefaultRole(string(RoleReadOnly)).SetCreatedAt(store.Now()).Save(ctx); err != nil {
				return err
			}
			return tx.Team.Create().SetDeploymentID(later.ID).SetName("All").SetSlug("all").SetIsUserDefault(true).SetCreatedAt(1).SetUpdatedAt(1).Exec(ctx)
		})
		s.invite(t, later.ID, "alice@acme.example")
		_, err := s.login(t, idp.idToken(t, s.clock.now(), map[string]any{"sub": "thief", "email_verified": false}))
		assertReason(t, err, denied)
		raw := idp.idToken(t, s.clock.now(), nil)
		var group sync.WaitGroup
		for range 8 { // the concurrent first requests of a browser
			group.Go(func() {
				if _, err := s.Authenticate(context.Background(), "Bearer "+raw); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		p := s.mustLogin(t, raw)
		if len(p.Grants) != 1 || p.Grants[0].Slug != "later" || p.Grants[0].Role != RoleReadOnly {
			t.Errorf("got %+v", p)
		}
		ctx := tenant.NewContext(t.Context(), later.ID)
		if got := st.Reader.TeamMember.Query().Where(teammember.UserID(p.ID)).CountX(ctx); got != 1 {
			t.Errorf("in %d default teams", got)
		}
		if st.Reader.Invitation.Query().Where(invitation.AcceptedAtIsNil()).ExistX(ctx) {
			t.Error("the invitation is still open")
		}
		_, err = s.login(t, idp.idToken(t, s.clock.now(), map[string]any{"sub": "bob", "email": "bob@acme.example"}))
		assertReason(t, err, denied)
	})
}

// Regression: an issuer that verified the address of a local user got this user's account.
func TestOIDCTakesOverNobody(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		idp := newProvider(t)
		s := newServer(t, st).withOIDC(t, idp)
		var local *ent.User
		write(t, st, func(ctx context.Context, tx *ent.Tx) (err error) {
			local, err = tx.User.Create().SetEmail("alice@acme.example").SetName("Alice").SetCreatedAt(store.Now()).Save(ctx)
			return err
		})
		for _, email := range []string{"alice@acme.example", " Alice@Acme.Example "} {
			_, err := s.login(t, idp.idToken(t, s.clock.now(), map[string]any{"email": email}))
			assertReason(t, err, denied)
			if !strings.Contains(statusText(err), "palisade user link") || !strings.Contains(statusText(err), `"alice-1"`) {
				t.Errorf("got %v", err)
			}
		}
		for i, changes := range []map[string]any{
			{"email": AdminEmail}, {"email": "ADMIN@localhost "}, {"email_verified": false}, {"email_verified": nil},
			{"email_verified": "no"}, {"email_verified": 1}, {"email": nil}, {"email": "@"}, {"email": "a b@acme.example"},
		} {
			changes["sub"] = "thief" + string(rune('a'+i))
			p := s.mustLogin(t, idp.idToken(t, s.clock.now(), changes))
			if p.ID == local.ID || p.Name == AdminEmail || !strings.HasSuffix(p.Name, "@unverified.invalid") {
				t.Errorf("%v: became %+v", changes, p)
			}
		}
		rows := st.Reader.User.Query().Where(user.EmailIn(AdminEmail, "alice@acme.example"), user.SubjectNotNil()).CountX(tenant.System(t.Context()))
		if rows != 0 {
			t.Errorf("%d local users have an identity of the issuer", rows)
		}
		// A user of an earlier version who has an identity is found by it under every setting.
		write(t, st, func(ctx context.Context, tx *ent.Tx) error {
			return tx.User.UpdateOneID(local.ID).SetIssuer(idp.URL).SetSubject("alice-1").Exec(ctx)
		})
		for _, admission := range Admissions {
			s.withSignIn(SignIn{Admission: admission})
			if p := s.mustLogin(t, idp.idToken(t, s.clock.now(), map[string]any{"email_verified": false})); p.ID != local.ID {
				t.Errorf("%s: got %+v", admission, p)
			}
		}
	})
}

func TestOIDCDomains(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		idp := newProvider(t)
		s := newServer(t, st).withOIDC(t, idp).withSignIn(SignIn{Admission: AdmitDomain, Domains: []string{"acme.example"}})
		for i, changes := range []map[string]any{
			{"email": "x@other.example"}, {"email": "x@sub.acme.example"}, {"email": "x@notacme.example"}, {"email": "acme.example"},
			{"email": "x@acme.example@other.example"}, {"email": "x@other.example,y@acme.example"}, {"email": "<x@other.example>@acme.example"},
			{"email": "x@other.example@acme.example"}, {"email": `"x@other.example"@acme.example`}, {"email": "x@other.example(@acme.example"},
			{"email": "<x@acme.example>"}, {"email": "(x)y@acme.example"}, {"email_verified": false}, {"email": nil, "hd": "acme.example"},
		} {
			changes["sub"] = "outsider" + string(rune('a'+i))
			_, err := s.login(t, idp.idToken(t, s.clock.now(), changes))
			assertReason(t, err, denied)
		}
		p := s.mustLogin(t, idp.idToken(t, s.clock.now(), nil))
		if len(p.Grants) != 1 || p.Grants[0].Slug != "acme" || p.Grants[0].Role != RoleMember {
			t.Errorf("got %+v", p)
		}
		s.invite(t, s.first.Deployment.ID, "guest@other.example")
		guest := s.mustLogin(t, idp.idToken(t, s.clock.now(), map[string]any{"sub": "guest", "email": "guest@other.example"}))
		if len(guest.Grants) != 1 {
			t.Errorf("got %+v", guest)
		}
	})
}

// teamsOf are the slugs of the teams of a user.
func (s *server) teamsOf(t *testing.T, userID int64) string {
	t.Helper()
	ctx := tenant.NewContext(t.Context(), s.first.Deployment.ID)
	var slugs []string
	for _, m := range s.st.Reader.TeamMember.Query().Where(teammember.UserID(userID)).Order(ent.Asc(teammember.FieldTeamID)).AllX(ctx) {
		slugs = append(slugs, s.st.Reader.Team.Query().Where(team.ID(m.TeamID)).OnlyX(ctx).Slug)
	}
	return strings.Join(slugs, " ")
}

func TestOIDCClaims(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		idp := newProvider(t)
		claims, err := ParseClaimMap("sec=admin;dev=member:web:api:absent;audit=readonly:web")
		if err != nil {
			t.Fatal(err)
		}
		s := newServer(t, st).withOIDC(t, idp).withSignIn(SignIn{Admission: AdmitClaim, Claim: "groups", Claims: claims})
		write(t, st, func(ctx context.Context, tx *ent.Tx) error {
			for _, slug := range []string{"web", "api", "own"} {
				err := tx.Team.Create().SetDeploymentID(s.first.Deployment.ID).SetName(slug).SetSlug(slug).SetCreatedAt(1).SetUpdatedAt(1).Exec(ctx)
				if err != nil {
					return err
				}
			}
			return nil
		})
		token := func(groups ...string) string {
			s.clock.advance(time.Minute)
			return idp.idToken(t, s.clock.now(), map[string]any{"groups": groups, "email_verified": false})
		}
		check := func(step, raw string, role Role, teams string) *Principal {
			t.Helper()
			p := s.mustLogin(t, raw)
			var got Role
			if len(p.Grants) > 0 {
				got = p.Grants[0].Role
			}
			if got != role || s.teamsOf(t, p.ID) != teams {
				t.Errorf("%s: role %q teams %q, want %q %q", step, got, s.teamsOf(t, p.ID), role, teams)
			}
			return p
		}
		_, err = s.login(t, token("other"))
		assertReason(t, err, denied)
		dev := token("dev", "other")
		alice := check("joins", dev, RoleMember, "web api")
		write(t, st, func(ctx context.Context, tx *ent.Tx) error {
			own := tx.Team.Query().Where(team.Slug("own")).OnlyX(ctx)
			return tx.TeamMember.Create().SetDeploymentID(own.DeploymentID).SetTeamID(own.ID).SetUserID(alice.ID).SetRole("TEAM_ROLE_MANAGER").SetCreatedAt(1).Exec(ctx)
		})
		spec := s.spec()
		spec.UserID, spec.Role = alice.ID, RoleAdmin
		_, hers := s.createToken(t, spec)
		apiToken := func(want Role) {
			t.Helper()
			if p, err := s.login(t, hers); want == "" {
				assertReason(t, err, denied)
			} else if err != nil || p.Grants[0].Role != want {
				t.Errorf("her API token: %+v, %v, want %s", p, err, want)
			}
		}
		apiToken(RoleMember)
		admin := token("sec", "dev")
		check("rises", admin, RoleAdmin, "web api own")
		apiToken(RoleAdmin)
		check("an older token takes nothing back", dev, RoleAdmin, "web api own")
		check("falls", token("audit"), RoleReadOnly, "web own")
		apiToken(RoleReadOnly)
		check("an older token gives nothing back", admin, RoleReadOnly, "web own")
		check("loses the claim", token(), "", "")
		apiToken("")
		check("an older token restores no membership", admin, "", "")
		check("has it again", token("dev"), RoleMember, "web api")
		apiToken(RoleMember)
	})
}

// Claims neither change nor remove what an administrator gave.
func TestOIDCClaimsLeaveInvitedPeopleAlone(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		idp := newProvider(t)
		s := newServer(t, st).withOIDC(t, idp).withSignIn(SignIn{
			Admission: AdmitClaim, Claim: "groups", Claims: ClaimMap{"sec": {Role: RoleAdmin}},
		})
		s.invite(t, s.first.Deployment.ID, "bob@acme.example")
		for _, groups := range [][]string{nil, {"sec"}, nil} {
			s.clock.advance(time.Minute)
			p := s.mustLogin(t, idp.idToken(t, s.clock.now(), map[string]any{"groups": groups, "sub": "bob", "email": "bob@acme.example"}))
			if len(p.Grants) != 1 || p.Grants[0].Role != RoleMember {
				t.Errorf("with %v: got %+v", groups, p)
			}
		}
	})
}

func TestOIDCAny(t *testing.T) {
	t.Parallel()
	idp := newProvider(t)
	s := newServer(t, openSQLite(t)).withOIDC(t, idp)
	p := s.mustLogin(t, idp.idToken(t, s.clock.now(), map[string]any{"email_verified": false}))
	if len(p.Grants) != 1 || p.Grants[0].Role != RoleMember {
		t.Errorf("got %+v", p)
	}
}
