package console_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// provider is an identity provider that a test can make misbehave. It checks what the server sends.
type provider struct {
	*httptest.Server
	key *ecdsa.PrivateKey

	mu     sync.Mutex
	codes  map[string]url.Values // parameters of the authorization request, by code
	claims jwt.MapClaims         // of the ID token, in addition to the usual ones
	down   bool                  // the token endpoint does not answer as OAuth 2.0 says
	names  bool                  // answers name the issuer
}

const (
	clientID     = "console"
	clientSecret = "not a secret: only this test's provider knows it"
)

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.configuration)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "k", Use: "sig", Algorithm: "ES256"}}})
	})
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (p *provider) configuration(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	write(w, http.StatusOK, map[string]any{
		"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
		"authorization_response_iss_parameter_supported": p.names,
	})
}

// set changes the behaviour.
func (p *provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// authorize answers an authorization request as after a successful login: with the parameters of the redirect.
func (p *provider) authorize(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Scheme+"://"+u.Host+u.Path != p.URL+"/authorize" {
		t.Fatalf("the browser is sent to %q, %v", address, err)
	}
	asked := u.Query()
	for name, want := range map[string]string{
		"response_type": "code", "client_id": clientID, "code_challenge_method": "S256", "scope": "openid email profile",
		"redirect_uri": "https://palisade.acme.test/auth/callback",
	} {
		if asked.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, asked.Get(name), want)
		}
	}
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if len(asked.Get(name)) < 43 {
			t.Errorf("%s has fewer than 256 bits: %q", name, asked.Get(name))
		}
	}
	code := rand.Text()
	p.set(func() { p.codes[code] = asked })
	return url.Values{"code": {code}, "state": {asked.Get("state")}}
}

// token redeems a code once, for the client and the browser that began.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		http.Error(w, "maintenance", http.StatusServiceUnavailable)
		return
	}
	id, secret, _ := r.BasicAuth()
	if plain, _ := url.QueryUnescape(secret); id != clientID || plain != clientSecret {
		write(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	asked, known := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !known || base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge") ||
		r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") {
		write(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": "unknown code"})
		return
	}
	now := time.Now()
	claims := jwt.MapClaims{
		"iss": p.URL, "aud": clientID, "sub": "ada-1", "email": "ada@acme.test", "email_verified": true, "name": "Ada",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "nonce": asked.Get("nonce"),
	}
	maps.Copy(claims, p.claims)
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["kid"] = "k"
	raw, err := token.SignedString(p.key)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, http.StatusOK, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": raw})
}
