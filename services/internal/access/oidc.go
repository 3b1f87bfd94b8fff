package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// oidcTimeout is how long one request to the issuer may take.
const oidcTimeout = 10 * time.Second

// oidcAlgorithms are the signatures that are accepted, whatever the issuer announces: none with a shared secret, which
// would make every holder of the client secret an issuer, and never "none".
var oidcAlgorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// OIDC verifies the ID tokens of one OpenID Connect issuer and knows their users. The issuer is asked for its keys when
// the first token comes, so that the server starts without it.
type OIDC struct {
	st       *store.Store
	issuer   string
	audience string
	keys     *remoteKeys
	log      *slog.Logger
	now      func() time.Time
}

// OIDCOptions say which issuer is trusted.
type OIDCOptions struct {
	// Issuer is the URL of the issuer, exactly as its tokens name it in iss.
	Issuer string
	// Audience must be among the aud of a token: the id of the client that the issuer knows this server by.
	Audience string
	// Transport carries the requests to the issuer; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// Log gets the failures to reach the issuer; nil means slog.Default().
	Log *slog.Logger
}

// NewOIDC checks the options and returns the verifier, without calling the issuer. Errors say which option is wrong.
func NewOIDC(st *store.Store, o OIDCOptions) (*OIDC, error) {
	if o.Issuer == "" || o.Audience == "" {
		return nil, errors.New("oidc-issuer and oidc-audience must be set both: without an audience, a token for any other client of the issuer would open this server")
	}
	if !trustworthyURL(o.Issuer) {
		return nil, fmt.Errorf("oidc-issuer must be an https:// URL without query and fragment (http:// only on this machine), got %q", o.Issuer)
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	p := &OIDC{st: st, issuer: o.Issuer, audience: o.Audience, log: o.Log, now: time.Now}
	client := &http.Client{Timeout: oidcTimeout, Transport: o.Transport}
	p.keys = newRemoteKeys(o.Issuer, client, o.Log, func() time.Time { return p.now() })
	return p, nil
}

// trustworthyURL refuses plain HTTP over a network: who can change the answers there can make keys for any user.
func trustworthyURL(issuer string) bool {
	u, err := url.Parse(issuer)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// Check asks the issuer for its configuration and keys, for the doctor command. The error is for operators.
func (p *OIDC) Check(ctx context.Context) error {
	keys, err := fetchKeys(ctx, p.issuer, p.keys.client)
	if err == nil && len(keys) == 0 {
		err = errors.New("it publishes no key")
	}
	if err != nil {
		return fmt.Errorf("OpenID Connect issuer %s: %w", p.issuer, err)
	}
	return nil
}

// identity is what a verified ID token says about its user.
type identity struct {
	Subject       string    `json:"sub"`
	Email         string    `json:"email"`
	EmailVerified looseBool `json:"email_verified"`
	Name          string    `json:"name"`
}

// looseBool reads true and "true": some issuers quote it.
type looseBool bool

// UnmarshalJSON takes everything else for false, the safe side.
func (b *looseBool) UnmarshalJSON(data []byte) error {
	*b = string(data) == "true" || string(data) == `"true"`
	return nil
}

// authenticate verifies an ID token and returns its user, who is taken in when he is new.
func (p *OIDC) authenticate(ctx context.Context, raw, keyID string) (*Principal, error) {
	who, err := p.verify(ctx, raw, keyID)
	if err != nil {
		return nil, err
	}
	return p.user(ctx, who)
}

func (p *OIDC) verify(ctx context.Context, raw, keyID string) (*identity, error) {
	keys, err := p.keys.find(ctx, keyID)
	if err != nil {
		return nil, apierr.Unavailable(err, "the OpenID Connect issuer cannot be reached to verify the token: try again")
	}
	if len(keys) == 0 {
		return nil, errBadCredential()
	}
	verifier := oidc.NewVerifier(p.issuer, &oidc.StaticKeySet{PublicKeys: keys}, &oidc.Config{
		ClientID: p.audience, SupportedSigningAlgs: oidcAlgorithms,
		Now: func() time.Time { return p.now().Add(-leeway) }, // the library knows no leeway for exp
	})
	token, err := verifier.Verify(ctx, raw)
	if err != nil {
		return nil, errBadCredential()
	}
	var who identity
	if err := token.Claims(&who); err != nil || who.Subject == "" || token.IssuedAt.After(p.now().Add(leeway)) {
		return nil, errBadCredential()
	}
	return &who, nil
}
