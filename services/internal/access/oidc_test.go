package access

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/store"
)

const testAudience = "palisade-client"

// provider is an OpenID Connect issuer on this machine.
type provider struct {
	*httptest.Server
	down    atomic.Bool
	fetches atomic.Int64

	mu   sync.Mutex
	key  *rsa.PrivateKey
	kid  string
	more []any // further entries of the key set
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{}
	p.rotate(t, "k1")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": p.URL, "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.fetches.Add(1)
		p.mu.Lock()
		defer p.mu.Unlock()
		keys := append([]any{jose.JSONWebKey{Key: &p.key.PublicKey, KeyID: p.kid, Use: "sig", Algorithm: "RS256"}}, p.more...)
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": keys})
	})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) rotate(t *testing.T, kid string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.kid = key, kid
}

// idToken signs a good ID token with some claims changed; nil removes one.
func (p *provider) idToken(t *testing.T, now time.Time, changes map[string]any) string {
	t.Helper()
	return p.sign(t, jwt.SigningMethodRS256, p.key, p.kid, now, changes)
}

func (p *provider) sign(t *testing.T, method jwt.SigningMethod, key any, kid string, now time.Time, changes map[string]any) string {
	t.Helper()
	claims := jwt.MapClaims{
		"iss": p.URL, "aud": testAudience, "sub": "alice-1", "email": "Alice@Acme.Example", "email_verified": true, "name": "Alice",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	token := jwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	raw, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// withOIDC makes the server also trust the issuer and admit all its users.
func (s *server) withOIDC(t *testing.T, p *provider) *server {
	t.Helper()
	o, err := NewOIDC(s.st, OIDCOptions{Issuer: p.URL, Audience: testAudience, Client: http.DefaultClient, SignIn: SignIn{Admission: AdmitAny}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	o.now = s.clock.now
	s.oidc = o
	return s
}

func TestOIDCProvisionsANewUser(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		idp := newProvider(t)
		s := newServer(t, st).withOIDC(t, idp)
		write(t, st, func(ctx context.Context, tx *ent.Tx) error {
			return tx.Deployment.Create().SetSlug("later").SetName("Later").SetCreatedAt(store.Now()).Exec(ctx)
		})
		raw := idp.idToken(t, s.clock.now(), nil)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if _, err := s.Authenticate(context.Background(), "Bearer "+raw); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		p := s.mustLogin(t, raw)
		if p.Kind != KindUser || p.Name != "alice@acme.example" || len(p.Grants) != 1 || p.Grants[0].Slug != "acme" || p.Grants[0].Role != RoleMember {
			t.Errorf("got %+v", p)
		}
		if got := st.Reader.User.Query().CountX(tenant.System(t.Context())); got != 2 {
			t.Errorf("%d users, want the administrator and alice", got)
		}
		// The subject identifies the user, not the address.
		again := s.mustLogin(t, idp.idToken(t, s.clock.now(), map[string]any{"email": "other@acme.example"}))
		if again.ID != p.ID {
			t.Errorf("got user %d, want %d", again.ID, p.ID)
		}
		if got := idp.fetches.Load(); got != 1 {
			t.Errorf("the keys were fetched %d times", got)
		}
	})
}

func TestOIDCRefuses(t *testing.T) {
	idp := newProvider(t)
	s := newServer(t, openSQLite(t)).withOIDC(t, idp)
	now := s.clock.now()
	otherKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public := idp.key.PublicKey.N.Bytes()
	for name, raw := range map[string]string{
		"alg none":                  idp.sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, idp.kid, now, nil),
		"HS256 with public key":     idp.sign(t, jwt.SigningMethodHS256, public, idp.kid, now, nil),
		"HS256 with client id":      idp.sign(t, jwt.SigningMethodHS256, []byte(testAudience), idp.kid, now, nil),
		"unknown key":               idp.sign(t, jwt.SigningMethodRS256, otherKey, idp.kid, now, nil),
		"unknown kid":               idp.sign(t, jwt.SigningMethodRS256, idp.key, "k9", now, nil),
		"unknown key without a kid": idp.sign(t, jwt.SigningMethodRS256, otherKey, "", now, nil),
		"expired":                   idp.idToken(t, now, map[string]any{"exp": now.Add(-leeway - time.Second).Unix()}),
		"no exp":                    idp.idToken(t, now, map[string]any{"exp": nil}),
		"exp is a string":           idp.idToken(t, now, map[string]any{"exp": strconv.FormatInt(now.Add(time.Hour).Unix(), 10)}),
		"not yet":                   idp.idToken(t, now, map[string]any{"nbf": now.Add(time.Hour).Unix()}),
		"issued in the future":      idp.idToken(t, now, map[string]any{"iat": now.Add(time.Hour).Unix()}),
		"wrong aud":                 idp.idToken(t, now, map[string]any{"aud": "other"}),
		"no aud":                    idp.idToken(t, now, map[string]any{"aud": nil}),
		"wrong iss":                 idp.idToken(t, now, map[string]any{"iss": "https://other.example"}),
		"our own iss":               idp.idToken(t, now, map[string]any{"iss": testURL}),
		"no iss":                    idp.idToken(t, now, map[string]any{"iss": nil}),
		"lives too long":            idp.idToken(t, now, map[string]any{"exp": now.Add(maxIDTokenLife + time.Second).Unix()}),
		"lives ten years":           idp.idToken(t, now, map[string]any{"exp": now.AddDate(10, 0, 0).Unix()}),
		"no iat":                    idp.idToken(t, now, map[string]any{"iat": nil}),
		"two aud, no azp":           idp.idToken(t, now, map[string]any{"aud": []string{testAudience, "other"}}),
		"two aud, azp of other":     idp.idToken(t, now, map[string]any{"aud": []string{testAudience, "other"}, "azp": "other"}),
		"azp of other":              idp.idToken(t, now, map[string]any{"azp": "other"}),
		"azp is no string":          idp.idToken(t, now, map[string]any{"azp": []string{testAudience}}),
		"no sub":                    idp.idToken(t, now, map[string]any{"sub": nil}),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := s.login(t, raw)
			assertBadCredential(t, p, err)
		})
	}
	for name, raw := range map[string]string{
		"just expired":  idp.idToken(t, now, map[string]any{"exp": now.Add(-leeway / 2).Unix()}),
		"two audiences": idp.idToken(t, now, map[string]any{"aud": []string{"other", testAudience}, "azp": testAudience}),
		"azp":           idp.idToken(t, now, map[string]any{"azp": testAudience}),
		"lives a day":   idp.idToken(t, now, map[string]any{"exp": now.Add(maxIDTokenLife).Unix()}),
		"no kid":        idp.sign(t, jwt.SigningMethodRS256, idp.key, "", now, nil),
	} {
		t.Run(name, func(t *testing.T) { s.mustLogin(t, raw) })
	}
	local := newServer(t, openSQLite(t))
	p, err := local.login(t, idp.idToken(t, now, nil))
	assertBadCredential(t, p, err)
}

func TestOIDCOutageIsNotTheCallersFault(t *testing.T) {
	idp := newProvider(t)
	idp.down.Store(true)
	s := newServer(t, openSQLite(t)).withOIDC(t, idp)
	raw := idp.idToken(t, s.clock.now(), nil)
	for range 3 {
		_, err := s.login(t, raw)
		assertReason(t, err, errorsv1.Reason_REASON_UNAVAILABLE)
	}
	if s.oidc.Check(t.Context()) == nil {
		t.Error("the check does not see the outage")
	}
	s.mustLogin(t, s.mint(t, time.Hour)) // other credentials do not need the issuer

	idp.down.Store(false)
	_, err := s.login(t, raw)
	assertReason(t, err, errorsv1.Reason_REASON_UNAVAILABLE) // too early for another fetch
	s.clock.advance(fetchInterval)
	s.mustLogin(t, raw)
	if err := s.oidc.Check(t.Context()); err != nil {
		t.Error(err)
	}

	idp.down.Store(true)
	s.clock.advance(2 * remoteKeysMaxAge)
	s.mustLogin(t, idp.idToken(t, s.clock.now(), nil)) // the known keys stay in use
}

func TestOIDCRotation(t *testing.T) {
	idp := newProvider(t)
	s := newServer(t, openSQLite(t)).withOIDC(t, idp)
	old := idp.idToken(t, s.clock.now(), nil)
	s.mustLogin(t, old)
	idp.rotate(t, "k2")
	fresh := idp.idToken(t, s.clock.now(), nil)
	for range 20 {
		p, err := s.login(t, fresh)
		assertBadCredential(t, p, err)
	}
	if got := idp.fetches.Load(); got != 1 {
		t.Errorf("unknown key ids caused %d fetches within the interval", got-1)
	}
	s.clock.advance(fetchInterval)
	s.mustLogin(t, fresh)
	s.clock.advance(fetchInterval)
	p, err := s.login(t, old)
	assertBadCredential(t, p, err)
}

// TestOIDCNewKeyUnderAnOldID: a signature by an unknown key fetches the keys again, and forged ones do not fetch more
// often.
func TestOIDCNewKeyUnderAnOldID(t *testing.T) {
	t.Parallel()
	idp := newProvider(t)
	s := newServer(t, openSQLite(t)).withOIDC(t, idp)
	old := idp.idToken(t, s.clock.now(), nil)
	s.mustLogin(t, old)
	s.clock.advance(fetchInterval)
	idp.rotate(t, "k1")
	s.mustLogin(t, idp.idToken(t, s.clock.now(), nil))
	for range 20 {
		p, err := s.login(t, old)
		assertBadCredential(t, p, err)
	}
	if got := idp.fetches.Load(); got != 2 {
		t.Errorf("%d fetches", got)
	}
	s.clock.advance(fetchInterval)
	idp.down.Store(true)
	p, err := s.login(t, old)
	assertBadCredential(t, p, err)
	s.mustLogin(t, idp.idToken(t, s.clock.now(), nil))
}

func TestOIDCWithdrawnKeyStopsVerifying(t *testing.T) {
	idp := newProvider(t)
	s := newServer(t, openSQLite(t)).withOIDC(t, idp)
	old := idp.idToken(t, s.clock.now(), nil)
	s.mustLogin(t, old)
	idp.rotate(t, "k2")
	s.clock.advance(remoteKeysMaxAge)
	_, _ = s.login(t, old) // starts a background fetch, and may or may not see its result
	<-s.oidc.keys.flight.DoChan("", s.oidc.keys.refresh)
	p, err := s.login(t, old)
	assertBadCredential(t, p, err)
}

func TestParseKeysKeepsUsableOnes(t *testing.T) {
	idp := newProvider(t)
	idp.more = []any{
		map[string]any{"kty": "oct", "k": "AAAA", "kid": "symmetric"},
		map[string]any{"kty": "EC", "crv": "secp256k1", "kid": "curve"},
		map[string]any{"kty": "new", "kid": "kind"},
		jose.JSONWebKey{Key: idp.key, KeyID: "private"},
		"no object",
	}
	s := newServer(t, openSQLite(t)).withOIDC(t, idp)
	s.mustLogin(t, idp.idToken(t, s.clock.now(), nil))
	if got := len(s.oidc.keys.keys); got != 1 {
		t.Errorf("%d keys kept: %+v", got, s.oidc.keys.keys)
	}
	forged := idp.sign(t, jwt.SigningMethodHS256, []byte{0, 0, 0}, "symmetric", s.clock.now(), nil)
	p, err := s.login(t, forged)
	assertBadCredential(t, p, err)
}

func TestNewOIDCRefuses(t *testing.T) {
	for _, o := range []OIDCOptions{
		{Issuer: "https://idp.example"}, {Audience: "x"}, {},
		{Issuer: "idp.example", Audience: "x"}, {Issuer: "http://idp.example", Audience: "x"}, {Issuer: "ftp://idp.example", Audience: "x"},
		{Issuer: "https://idp.example?x=1", Audience: "x"}, {Issuer: "https://user:pw@idp.example", Audience: "x"}, {Issuer: "https://", Audience: "x"},
	} {
		if _, err := NewOIDC(nil, o); err == nil || !strings.Contains(err.Error(), "oidc-issuer") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, issuer := range []string{"https://idp.example/realms/acme", "http://localhost:5556/dex", "http://127.0.0.1:1", "http://[::1]:1"} {
		if _, err := NewOIDC(nil, OIDCOptions{Issuer: issuer, Audience: "x"}); err != nil {
			t.Error(err)
		}
	}
}

func TestOIDCCheckNamesWhatIsWrong(t *testing.T) {
	mux := http.NewServeMux()
	idp := httptest.NewServer(mux)
	defer idp.Close()
	var configuration, keys string
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.ReplaceAll(configuration, "URL", idp.URL)))
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(keys)) })
	const good = `{"issuer":"URL","jwks_uri":"URL/keys"}`
	o, err := NewOIDC(nil, OIDCOptions{Issuer: idp.URL, Audience: "x", Client: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ configuration, keys, want string }{
		{"<html>", "", "discovery"},
		{`{"issuer":"https://other.example","jwks_uri":"URL/keys"}`, "", "discovery"},
		{`{"issuer":"URL"}`, "", "jwks_uri"},
		{`{"issuer":"URL","jwks_uri":"URL/none"}`, "", "404"},
		{`{"issuer":"URL","jwks_uri":"URL/\u007f"}`, "", "keys"},
		{good, "<html>", "not a JSON Web Key Set"},
		{good, `{"keys":[]}`, "no key"},
		{good, `{"keys":["` + strings.Repeat("x", maxKeySet) + `"]}`, "larger than"},
	} {
		configuration, keys = c.configuration, c.keys
		if err := o.Check(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), idp.URL) {
			t.Errorf("%s %.40s: got %v, want %q", c.configuration, c.keys, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
