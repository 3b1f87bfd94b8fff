package access

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/store"
)

func (s *server) spec() TokenSpec {
	return TokenSpec{DeploymentID: s.first.Deployment.ID, Name: "ci", Scopes: []Scope{ScopeWebAPI}, Role: RoleMember}
}

func (s *server) createToken(t testing.TB, spec TokenSpec) (*ent.Token, string) {
	t.Helper()
	row, value, err := s.tokens.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return row, value
}

func TestTokenAuthenticates(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		spec := s.spec()
		spec.LimitedScopes = []string{"sms"}
		row, value := s.createToken(t, spec)
		if row.Hint != value[len(value)-4:] || bytes.Contains(row.Hash, []byte(value)) {
			t.Errorf("stored %+v", row)
		}
		p := s.mustLogin(t, value)
		want := Grant{DeploymentID: s.first.Deployment.ID, Slug: "acme", Name: "Acme", Role: RoleMember}
		if p.Kind != KindToken || p.ID != row.ID || p.Name != "ci" || !slices.Equal(p.Grants, []Grant{want}) ||
			!slices.Equal(p.Scopes, spec.Scopes) || !slices.Equal(p.LimitedScopes, spec.LimitedScopes) {
			t.Errorf("got %+v", p)
		}
		if p := s.mustLogin(t, s.first.TokenValue); p.UserID == 0 || p.LimitedScopes != nil || p.Grants[0].Role != RoleAdmin {
			t.Errorf("bootstrap token: %+v", p)
		}
	})
}

func TestBadTokensLookAlike(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		revoked, revokedValue := s.createToken(t, s.spec())
		spec := s.spec()
		spec.ExpiresAt = s.clock.now().Add(time.Hour)
		_, expiring := s.createToken(t, spec)
		s.mustLogin(t, revokedValue)
		s.mustLogin(t, expiring)

		if err := s.tokens.Revoke(t.Context(), s.first.Deployment.ID, revoked.ID); err != nil {
			t.Fatal(err)
		}
		s.clock.advance(time.Hour + time.Second)
		for name, credential := range map[string]string{
			"revoked": revokedValue, "expired": expiring, "unknown": newTokenValue(),
			"cut off": s.first.TokenValue[:20], "longer": s.first.TokenValue + "x",
			"other case": strings.ToUpper(s.first.TokenValue), "hash": fmt.Sprintf("%x", hashToken(s.first.TokenValue)),
			"garbage": "' OR 1=1 --", "quoted": `"x"`,
		} {
			t.Run(name, func(t *testing.T) {
				p, err := s.login(t, credential)
				assertBadCredential(t, p, err)
			})
		}
		p, err := s.Authenticate(t.Context(), "Basic "+s.first.TokenValue)
		assertBadCredential(t, p, err)
		_, err = s.Authenticate(t.Context(), "")
		assertReason(t, err, unauthorized)
		s.mustLogin(t, s.first.TokenValue)
	})
}

func TestTokensStayInTheirDeployment(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s, ctx := newServer(t, st), t.Context()
		if only, err := s.tokens.DeploymentBySlug(ctx, ""); err != nil || only.ID != s.first.Deployment.ID {
			t.Errorf("the only deployment: %v, %v", only, err)
		}
		var other *ent.Deployment
		write(t, st, func(ctx context.Context, tx *ent.Tx) (err error) {
			// the slug that a server gives its first deployment has no special meaning
			if err := tx.Deployment.Create().SetSlug("default").SetName("Default").SetCreatedAt(store.Now()).Exec(ctx); err != nil {
				return err
			}
			other, err = tx.Deployment.Create().SetSlug("globex").SetName("Globex").SetCreatedAt(store.Now()).Save(ctx)
			return err
		})
		row, value := s.createToken(t, s.spec())
		assertReason(t, s.tokens.Revoke(ctx, other.ID, row.ID), notFound)
		if list, err := s.tokens.List(ctx, other.ID); err != nil || len(list) != 0 {
			t.Errorf("the other deployment lists %v, %v", list, err)
		}
		_, err := ResolveGrant(s.mustLogin(t, value), "globex", 0, false)
		assertReason(t, err, notFound)
		spec := s.spec()
		spec.DeploymentID = other.ID
		_, _, err = s.tokens.Create(ctx, spec)
		assertReason(t, err, errorsv1.Reason_REASON_FAILED_PRECONDITION)

		if found, err := s.tokens.DeploymentBySlug(ctx, "globex"); err != nil || found.ID != other.ID {
			t.Errorf("got %v, %v", found, err)
		}
		_, err = s.tokens.DeploymentBySlug(ctx, "nobody")
		assertReason(t, err, notFound)
		if want := `deployment "nobody" not found; there is acme, default, globex`; statusText(err) != want {
			t.Errorf("got %q, want %q", statusText(err), want)
		}
		_, err = s.tokens.DeploymentBySlug(ctx, "")
		assertReason(t, err, errorsv1.Reason_REASON_FAILED_PRECONDITION)
		if want := "there are several deployments, acme, default, globex: name one with --deployment"; statusText(err) != want {
			t.Errorf("got %q, want %q", statusText(err), want)
		}
	})
}

func TestTokenListAndRevoke(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s, ctx, id := newServer(t, st), t.Context(), int64(0)
		for range 3 {
			s.clock.advance(time.Second)
			row, _ := s.createToken(t, s.spec())
			id = row.ID
		}
		if err := s.tokens.Revoke(ctx, s.first.Deployment.ID, id); err != nil {
			t.Fatal(err)
		}
		revokedAt := store.Micros(s.clock.now())
		s.clock.advance(time.Hour)
		if err := s.tokens.Revoke(ctx, s.first.Deployment.ID, id); err != nil {
			t.Errorf("revoke again: %v", err)
		}
		assertReason(t, s.tokens.Revoke(ctx, s.first.Deployment.ID, 1<<40), notFound)
		list, err := s.tokens.List(ctx, s.first.Deployment.ID)
		if err != nil || len(list) != 4 || list[0].ID != id || list[3].Name != "bootstrap" {
			t.Fatalf("got %v, %v", list, err)
		}
		if list[0].RevokedAt == nil || *list[0].RevokedAt > revokedAt {
			t.Errorf("the second revocation moved the time: %v", list[0].RevokedAt)
		}
	})
}

func TestTokenCreateRefuses(t *testing.T) {
	s := newServer(t, openSQLite(t))
	for field, change := range map[string]func(*TokenSpec){
		"name":      func(o *TokenSpec) { o.Name = " " },
		"role":      func(o *TokenSpec) { o.Role = "owner" },
		"expiresAt": func(o *TokenSpec) { o.ExpiresAt = s.clock.now().Add(-time.Second) },
	} {
		spec := s.spec()
		change(&spec)
		_, _, err := s.tokens.Create(t.Context(), spec)
		assertReason(t, err, errorsv1.Reason_REASON_INVALID_ARGUMENT)
		if err == nil || !strings.HasPrefix(statusText(err), field+" ") {
			t.Errorf("%s: %v", field, err)
		}
	}
	spec := s.spec()
	spec.Scopes = []Scope{ScopeAgent, "root"}
	_, _, err := s.tokens.Create(t.Context(), spec)
	assertReason(t, err, errorsv1.Reason_REASON_INVALID_ARGUMENT)
}

func TestLastUseIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		if err := s.Close(t.Context()); err != nil { // usage writes every few seconds; close it to write now
			t.Fatal(err)
		}
		row, value := s.createToken(t, s.spec())
		lastUse := func() int64 {
			t.Helper()
			now, err := st.Reader.Token.Query().Where(token.ID(row.ID)).Only(tenant.System(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			if now.LastUsedAt == nil {
				return 0
			}
			return *now.LastUsedAt
		}
		use := func() int64 {
			t.Helper()
			s.mustLogin(t, value)
			if err := s.usage.flush(t.Context(), s.clock.now()); err != nil {
				t.Fatal(err)
			}
			return lastUse()
		}
		s.mustLogin(t, value)
		if lastUse() != 0 {
			t.Error("the request itself wrote")
		}
		first := use()
		if first == 0 {
			t.Fatal("the first use is not written")
		}
		s.clock.advance(usageResolution / 2)
		if got := use(); got != first {
			t.Errorf("written again within the minute: %d, %d", first, got)
		}
		s.clock.advance(usageResolution)
		if got := use(); got <= first {
			t.Errorf("not written after a minute: %d, %d", first, got)
		}
	})
}

func TestLastUseIsBounded(t *testing.T) {
	u := newUsage(nil, nil, "", nil) // not started: nothing is written
	for id := range int64(2 * maxPendingUses) {
		u.record(id, 0, store.Now())
	}
	if got := len(u.pending); got != maxPendingUses {
		t.Errorf("%d uses pending, want %d", got, maxPendingUses)
	}
}

func TestLastUseIsWrittenOnClose(t *testing.T) {
	s := newServer(t, openSQLite(t))
	row, value := s.createToken(t, s.spec())
	s.mustLogin(t, value)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := s.st.Reader.Token.Get(tenant.System(t.Context()), row.ID)
	if err != nil || got.LastUsedAt == nil {
		t.Errorf("the use is lost: %v, %v", got, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("close again: %v", err)
	}
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		const nodes = 5
		starts := make([]*FirstStart, nodes)
		var group sync.WaitGroup
		for i := range nodes {
			group.Go(func() {
				first, err := Bootstrap(context.Background(), st, BootstrapOptions{})
				if err != nil {
					t.Error(err)
				}
				starts[i] = first
			})
		}
		group.Wait()
		starts = slices.DeleteFunc(starts, func(f *FirstStart) bool { return f == nil })
		if len(starts) != 1 {
			t.Fatalf("%d nodes made the first start", len(starts))
		}
		first := starts[0]
		if first.Deployment.Slug != "default" || first.Deployment.Name != "default" || first.Email != AdminEmail ||
			!strings.HasSuffix(first.TokenValue, first.TokenHint) {
			t.Errorf("got %+v", first)
		}
		ctx := tenant.System(t.Context())
		counts := []int{
			st.Reader.Deployment.Query().CountX(ctx), st.Reader.User.Query().CountX(ctx),
			st.Reader.Membership.Query().CountX(ctx), st.Reader.Token.Query().CountX(ctx),
		}
		if !slices.Equal(counts, []int{1, 1, 1, 1}) {
			t.Errorf("deployments, users, memberships, tokens: %v", counts)
		}
		again, err := Bootstrap(t.Context(), st, BootstrapOptions{Slug: "other", Token: strings.Repeat("0123456789abcdef", 3)})
		if again != nil || err != nil {
			t.Errorf("second start: %+v, %v", again, err)
		}
	})
}

func TestBootstrapWithAChosenToken(t *testing.T) {
	for _, value := range []string{"sgp_" + strings.Repeat("0123456789abcdef", 3), "correct-horse-battery-staple"} {
		st := openSQLite(t)
		first, err := Bootstrap(t.Context(), st, BootstrapOptions{Slug: "acme", Token: value})
		if err != nil {
			t.Fatal(err)
		}
		if first.TokenValue != "" || first.TokenHint != value[len(value)-4:] {
			t.Errorf("got %+v", first)
		}
		row, err := findToken(t.Context(), st, hashToken(value))
		if err != nil || row == nil || row.Slug != "acme" {
			t.Fatalf("got %+v, %v", row, err)
		}
		p, err := row.principal()
		if err != nil || !reachesAll(p) || p.Grants[0].Role != RoleAdmin {
			t.Errorf("got %+v, %v", p, err)
		}
	}
}

func TestBootstrapRefuses(t *testing.T) {
	st := openSQLite(t)
	for name, o := range map[string]BootstrapOptions{
		"upper case":  {Slug: "Acme"},
		"slash":       {Slug: "acme/web"},
		"dash first":  {Slug: "-acme"},
		"too long":    {Slug: strings.Repeat("a", maxSlug+1)},
		"long name":   {Slug: "acme", Name: strings.Repeat("a", maxName+1)},
		"short token": {Token: "secret"},
	} {
		_, err := Bootstrap(t.Context(), st, o)
		assertReason(t, err, errorsv1.Reason_REASON_INVALID_ARGUMENT)
		if o.Token != "" && strings.Contains(err.Error(), o.Token) {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
	if st.Reader.Deployment.Query().ExistX(tenant.System(t.Context())) {
		t.Error("a refused first start left something behind")
	}
}

func TestSlugOf(t *testing.T) {
	for name, want := range map[string]string{
		"": "default", "Acme Corp": "acme-corp", "Müller & Söhne": "muller-and-sohne", "株式会社": "zhu-shi-hui-she",
		"!!!": "default", strings.Repeat("a", 100): strings.Repeat("a", maxSlug), strings.Repeat("a", 62) + " b": strings.Repeat("a", 62),
	} {
		if got := slugOf(name); got != want || !slugForm.MatchString(got) {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func BenchmarkAuthenticateToken(b *testing.B) {
	s := newServer(b, openSQLite(b))
	header := "Bearer " + s.first.TokenValue
	for b.Loop() {
		if _, err := s.Authenticate(b.Context(), header); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCreateAsGivesNoMoreThanTheCallerHas(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		create := func(caller *Principal, role Role, change func(*TokenSpec)) error {
			spec := s.spec()
			change(&spec)
			return st.Write(tenant.NewContext(t.Context(), spec.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
				row, value, err := s.tokens.CreateAs(ctx, tx, caller, role, spec)
				if err == nil && (row.UserID != caller.UserID || !strings.HasSuffix(value, row.Hint)) {
					t.Errorf("created %v", row)
				}
				return err
			})
		}
		member := &Principal{Kind: KindUser, ID: 1, UserID: 1}
		for role, want := range map[Role]errorsv1.Reason{
			RoleAdmin: errorsv1.Reason_REASON_PERMISSION_DENIED, RoleMember: 0, RoleImpersonator: 0, RoleReadOnly: 0,
		} {
			err := create(member, RoleMember, func(o *TokenSpec) { o.Role, o.Scopes = role, Scopes })
			if want == 0 && err != nil {
				t.Errorf("%s: %v", role, err)
			} else if want != 0 {
				assertReason(t, err, want)
			}
		}
		expiring := s.spec()
		expiring.ExpiresAt = s.clock.now().Add(time.Hour)
		row, value := s.createToken(t, expiring)
		caller := s.mustLogin(t, value)
		assertReason(t, create(caller, RoleMember, func(o *TokenSpec) { o.Scopes = Scopes }), errorsv1.Reason_REASON_PERMISSION_DENIED)
		assertReason(t, create(caller, RoleMember, func(*TokenSpec) {}), errorsv1.Reason_REASON_PERMISSION_DENIED)
		assertReason(t, create(caller, RoleMember, func(o *TokenSpec) { o.ExpiresAt = expiring.ExpiresAt.Add(time.Second) }), errorsv1.Reason_REASON_PERMISSION_DENIED)
		assertReason(t, create(caller, RoleMember, func(o *TokenSpec) { o.Name = "" }), errorsv1.Reason_REASON_INVALID_ARGUMENT)
		same := func(o *TokenSpec) { o.ExpiresAt = expiring.ExpiresAt }
		if err := create(caller, RoleMember, same); err != nil {
			t.Errorf("the same again: %v", err)
		}
		if err := s.tokens.Revoke(t.Context(), expiring.DeploymentID, row.ID); err != nil {
			t.Fatal(err)
		}
		assertReason(t, create(caller, RoleMember, same), errorsv1.Reason_REASON_UNAUTHENTICATED)
	})
}
