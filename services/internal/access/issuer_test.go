package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

func TestMintedTokenAuthenticates(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		p := s.mustLogin(t, s.mint(t, time.Hour))
		want := Grant{DeploymentID: s.first.Deployment.ID, Slug: "acme", Name: "Acme", Role: RoleAdmin}
		if p.Kind != KindUser || p.ID != p.UserID || p.Name != AdminEmail || len(p.Grants) != 1 || p.Grants[0] != want {
			t.Errorf("got %+v", p)
		}
		write(t, st, func(ctx context.Context, tx *ent.Tx) error {
			d, err := tx.Deployment.Create().SetSlug("globex").SetName("Globex").SetCreatedAt(store.Now()).Save(ctx)
			if err != nil {
				return err
			}
			return tx.Membership.Create().SetDeploymentID(d.ID).SetUserID(p.ID).SetRole(string(RoleReadOnly)).SetCreatedAt(store.Now()).Exec(ctx)
		})
		p = s.mustLogin(t, s.mint(t, time.Hour))
		if len(p.Grants) != 2 || p.Grants[1].Slug != "globex" || p.Grants[1].Role != RoleReadOnly {
			t.Errorf("two memberships: %+v", p.Grants)
		}
		raw := s.mint(t, time.Hour)
		write(t, st, func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.Membership.Delete().Where(membership.UserID(p.ID)).Exec(ctx)
			return err
		})
		if p := s.mustLogin(t, raw); len(p.Grants) != 0 {
			t.Errorf("no memberships: %+v", p.Grants)
		}
		write(t, st, func(ctx context.Context, tx *ent.Tx) error { return tx.User.DeleteOneID(p.ID).Exec(ctx) })
		gone, err := s.login(t, raw)
		assertBadCredential(t, gone, err)
	})
}

func TestMintRefuses(t *testing.T) {
	s := newServer(t, openSQLite(t))
	for _, ttl := range []time.Duration{-time.Hour, 0, time.Second - 1, MaxTTL + 1} {
		_, err := s.issuer.Mint(t.Context(), AdminEmail, ttl)
		assertReason(t, err, errorsv1.Reason_REASON_INVALID_ARGUMENT)
	}
	_, err := s.issuer.Mint(t.Context(), "nobody@acme.example", time.Hour)
	assertReason(t, err, notFound)
	if _, err := s.issuer.Mint(t.Context(), " Admin@LocalHost", MaxTTL); err != nil {
		t.Error(err)
	}
	other, err := secret.Open(filepath.Join(t.TempDir(), "other.key"), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewIssuer(s.st, other, testURL).Mint(t.Context(), AdminEmail, time.Hour); err == nil {
		t.Error("signed with a key that cannot be unsealed")
	}
}

func TestMintWithoutAKey(t *testing.T) {
	s := newNode(t, openSQLite(t), nil, &clock{})
	if _, err := Bootstrap(t.Context(), s.st, BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := s.issuer.Mint(t.Context(), AdminEmail, time.Hour)
	assertReason(t, err, errorsv1.Reason_REASON_FAILED_PRECONDITION)
}

// TestForgedTokens changes one property of a valid token at a time.
func TestForgedTokens(t *testing.T) {
	s := newServer(t, openSQLite(t))
	signer, err := s.issuer.signingKey(tenant.System(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	admin := s.mustLogin(t, s.mint(t, time.Hour))
	now := s.clock.now()
	good := func() jwt.MapClaims {
		return jwt.MapClaims{
			"iss": testURL, "aud": Audience, "sub": strconv.FormatInt(admin.ID, 10),
			"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		}
	}
	sign := func(method jwt.SigningMethod, key any, header, claims map[string]any) string {
		all := good()
		for name, value := range claims {
			if value == nil {
				delete(all, name)
				continue
			}
			all[name] = value
		}
		token := jwt.NewWithClaims(method, all)
		token.Header["kid"] = signer.id
		for name, value := range header {
			token.Header[name] = value
		}
		raw, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	es256 := func(claims map[string]any) string { return sign(jwt.SigningMethodES256, signer.private, nil, claims) }
	public, err := x509.MarshalPKIXPublicKey(signer.private.Public())
	if err != nil {
		t.Fatal(err)
	}
	otherKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	valid := es256(nil)
	parts := strings.Split(valid, ".")
	bad := map[string]string{
		"alg none":              sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, nil),
		"HS256 with public DER": sign(jwt.SigningMethodHS256, public, nil, nil),
		"HS256 with public PEM": sign(jwt.SigningMethodHS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), nil, nil),
		"RS256":                 sign(jwt.SigningMethodRS256, rsaKey, nil, nil),
		"unknown key":           sign(jwt.SigningMethodES256, otherKey, nil, nil),
		"unknown kid":           sign(jwt.SigningMethodES256, signer.private, map[string]any{"kid": "x"}, nil),
		"no kid":                sign(jwt.SigningMethodES256, signer.private, map[string]any{"kid": nil}, nil),
		"kid of another type":   sign(jwt.SigningMethodES256, signer.private, map[string]any{"kid": 7}, nil),
		"crit":                  sign(jwt.SigningMethodES256, signer.private, map[string]any{"crit": []string{"exp"}}, nil),
		"no signature":          parts[0] + "." + parts[1] + ".",
		"other claims":          parts[0] + "." + strings.Split(es256(map[string]any{"sub": "2"}), ".")[1] + "." + parts[2],
		"wrong iss":             es256(map[string]any{"iss": testURL + "/"}),
		"no iss":                es256(map[string]any{"iss": nil}),
		"wrong aud":             es256(map[string]any{"aud": "other"}),
		"no aud":                es256(map[string]any{"aud": nil}),
		"no exp":                es256(map[string]any{"exp": nil}),
		"no nbf":                es256(map[string]any{"nbf": nil}),
		"no iat":                es256(map[string]any{"iat": nil}),
		"no sub":                es256(map[string]any{"sub": nil}),
		"sub of nobody":         es256(map[string]any{"sub": "123456789"}),
		"sub no number":         es256(map[string]any{"sub": AdminEmail}),
		"sub zero":              es256(map[string]any{"sub": "0"}),
		"expired":               es256(map[string]any{"exp": now.Add(-leeway - time.Second).Unix()}),
		"not yet":               es256(map[string]any{"nbf": now.Add(leeway + time.Minute).Unix()}),
		"issued in the future":  es256(map[string]any{"iat": now.Add(leeway + time.Minute).Unix()}),
		"lives too long":        es256(map[string]any{"exp": now.Add(MaxTTL + time.Second).Unix()}),
		"no JSON":               "AAAA.AAAA.AAAA",
		"cut off":               valid[:len(valid)-5],
	}
	for name, raw := range bad {
		t.Run(name, func(t *testing.T) {
			p, err := s.login(t, raw)
			assertBadCredential(t, p, err)
		})
	}
	for name, raw := range map[string]string{
		"unchanged":         valid,
		"other clock ahead": es256(map[string]any{"iat": now.Add(leeway / 2).Unix(), "nbf": now.Add(leeway / 2).Unix()}),
		"just expired":      es256(map[string]any{"exp": now.Add(-leeway / 2).Unix()}),
		"two audiences":     es256(map[string]any{"aud": []string{"other", Audience}}),
	} {
		t.Run(name, func(t *testing.T) { s.mustLogin(t, raw) })
	}
}

func TestTokenExpires(t *testing.T) {
	s := newServer(t, openSQLite(t))
	raw := s.mint(t, time.Hour)
	s.clock.advance(time.Hour + leeway/2)
	s.mustLogin(t, raw)
	s.clock.advance(leeway)
	p, err := s.login(t, raw)
	assertBadCredential(t, p, err)
}

func TestRotation(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		a := newServer(t, st)
		b := newNode(t, st, a.issuer.key, a.clock)
		old := a.mint(t, MaxTTL)
		a.mustLogin(t, old)
		b.mustLogin(t, old)
		oldKey, err := a.issuer.signingKey(tenant.System(t.Context()))
		if err != nil {
			t.Fatal(err)
		}

		a.clock.advance(2 * reloadInterval)
		keyID, err := a.issuer.Rotate(t.Context(), false)
		if err != nil || keyID == oldKey.id {
			t.Fatalf("rotated to %q, %v", keyID, err)
		}
		fresh := b.mint(t, MaxTTL)
		if got := kidOf(t, fresh); got != keyID {
			t.Errorf("the other node signs with %s, want %s", got, keyID)
		}
		for _, node := range []*server{a, b} {
			node.mustLogin(t, old)
			node.mustLogin(t, fresh)
		}
		if got := len(jwksOf(t, b.issuer).Keys); got != 2 {
			t.Errorf("%d keys published, want 2", got)
		}

		a.clock.advance(retention + time.Second)
		if got := len(jwksOf(t, b.issuer).Keys); got != 1 {
			t.Errorf("%d keys published after the old one's time, want 1", got)
		}
		now := a.clock.now()
		forged := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
			"iss": testURL, "aud": Audience, "sub": "1", "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		})
		forged.Header["kid"] = oldKey.id
		raw, err := forged.SignedString(oldKey.private)
		if err != nil {
			t.Fatal(err)
		}
		p, err := b.login(t, raw)
		assertBadCredential(t, p, err)

		if _, err := b.issuer.Rotate(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if got := st.Reader.SigningKey.Query().CountX(tenant.System(t.Context())); got != 2 {
			t.Errorf("%d keys kept, want 2", got)
		}
	})
}

func TestUnknownKeyIDsReadTheStoreOnceASecond(t *testing.T) {
	s := newServer(t, openSQLite(t))
	now := time.Now()
	s.issuer.now = func() time.Time { return now }
	find := func(keyID string) *verificationKey {
		t.Helper()
		key, err := s.issuer.keys.find(t.Context(), keyID)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	if find("x") != nil {
		t.Fatal("found a key that does not exist")
	}
	keyID, err := s.issuer.Rotate(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if find(keyID) != nil {
		t.Error("the store was read twice within the interval")
	}
	now = now.Add(reloadInterval)
	if find(keyID) == nil {
		t.Error("the new key is not seen after the interval")
	}
}

// TestRevokedKeys: after a rotation with revoke, no node accepts a token of an older key, although each node has cached
// its public key. Tokens that were minted since are valid.
func TestRevokedKeys(t *testing.T) {
	onEachStore(t, func(t *testing.T, st *store.Store) {
		a := newServer(t, st)
		b := newNode(t, st, a.issuer.key, a.clock)
		rotate := func(revoke bool) {
			t.Helper()
			if _, err := a.issuer.Rotate(t.Context(), revoke); err != nil {
				t.Fatal(err)
			}
		}
		old := a.mint(t, time.Hour)
		rotate(false)
		a.mustLogin(t, old)
		b.mustLogin(t, old)
		rotate(true)
		for _, node := range []*server{a, b} {
			p, err := node.login(t, old)
			assertBadCredential(t, p, err)
		}
		fresh := a.mint(t, time.Hour)
		a.clock.advance(reloadInterval)
		a.mustLogin(t, fresh)
		b.mustLogin(t, fresh)
		p, err := b.login(t, old)
		assertBadCredential(t, p, err)
		if n := len(jwksOf(t, b.issuer).Keys); n != 1 {
			t.Errorf("%d keys are published, want the new one", n)
		}
	})
}

func TestEnsureKeyAtOnceMakesOne(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		write(t, st, func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.SigningKey.Delete().Exec(ctx)
			return err
		})
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				// As if all nodes had found no key before the first one wrote its key.
				node := NewIssuer(st, s.issuer.key, testURL)
				if err := node.makeFirstKey(tenant.System(context.Background())); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if err := s.issuer.EnsureKey(t.Context()); err != nil {
			t.Error(err)
		}
		if got := st.Reader.SigningKey.Query().CountX(tenant.System(t.Context())); got != 1 {
			t.Errorf("%d keys, want 1", got)
		}
	})
}

func TestJWKS(t *testing.T) {
	s := newServer(t, openSQLite(t))
	raw := s.mint(t, time.Hour)
	set := jwksOf(t, s.issuer)
	if len(set.Keys) != 1 || set.Keys[0].KeyID != kidOf(t, raw) || !set.Keys[0].IsPublic() || set.Keys[0].Use != "sig" {
		t.Fatalf("got %+v", set)
	}
	jws, err := jose.ParseSignedCompact(raw, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jws.Verify(set.Keys[0]); err != nil {
		t.Errorf("the published key does not verify: %v", err)
	}
	for method, want := range map[string]int{http.MethodHead: 200, http.MethodPost: 405, http.MethodDelete: 405} {
		w := httptest.NewRecorder()
		s.issuer.JWKS().ServeHTTP(w, httptest.NewRequest(method, "/.well-known/jwks.json", nil))
		if w.Code != want {
			t.Errorf("%s: got %d, want %d", method, w.Code, want)
		}
	}
	if err := s.st.Close(); err != nil {
		t.Fatal(err)
	}
	s.clock.advance(time.Minute)
	w := httptest.NewRecorder()
	s.issuer.JWKS().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/.well-known/jwks.json", nil))
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "sql") {
		t.Errorf("without a store: %d %s", w.Code, w.Body)
	}
}

func jwksOf(t *testing.T, i *Issuer) jose.JSONWebKeySet {
	t.Helper()
	w := httptest.NewRecorder()
	i.JWKS().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/.well-known/jwks.json", nil))
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/jwk-set+json" || strings.Contains(w.Body.String(), `"d"`) {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(w.Body.Bytes(), &set); err != nil {
		t.Fatal(err)
	}
	return set
}

func kidOf(t *testing.T, raw string) string {
	t.Helper()
	token, _, err := jwt.NewParser().ParseUnverified(raw, jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	kid, _ := token.Header["kid"].(string)
	return kid
}
