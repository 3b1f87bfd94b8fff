package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// oidcTimeout is how long fetching the issuer's keys may take, which are two requests.
	oidcTimeout = 20 * time.Second
	// maxIDTokenLife is the longest time from iat to exp of an ID token. What an issuer takes away from a user holds when
	// the last token ends that was made before.
	maxIDTokenLife = 24 * time.Hour
)

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
	signIn   SignIn
	trail    *audit.Trail
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
	// SignIn says whom of the issuer's users the server takes in.
	SignIn SignIn
	// Trail gets an entry for every membership that a sign-in changes; nil means that none is kept.
	Trail *audit.Trail
	// Client calls the issuer. It bounds each call.
	Client *http.Client
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
	p := &OIDC{st: st, issuer: o.Issuer, audience: o.Audience, signIn: o.SignIn, trail: o.Trail, log: o.Log, now: time.Now}
	p.keys = newRemoteKeys(o.Issuer, o.Client, o.Log, func() time.Time { return p.now() })
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
	Subject         string    `json:"sub"`
	Email           string    `json:"email"`
	EmailVerified   looseBool `json:"email_verified"`
	Name            string    `json:"name"`
	AuthorizedParty string    `json:"azp"`

	issuedAt time.Time
	claims   map[string]json.RawMessage // all of them
}

// looseBool reads true and "true": some issuers quote it.
type looseBool bool

// UnmarshalJSON takes everything else for false, the safe side.
func (b *looseBool) UnmarshalJSON(data []byte) error {
	*b = string(data) == "true" || string(data) == `"true"`
	return nil
}

// authenticate verifies an ID token and returns its user. A new one is taken in, or refused, as SignIn says.
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
	who := identity{issuedAt: token.IssuedAt}
	if token.Claims(&who) != nil || token.Claims(&who.claims) != nil || who.Subject == "" || !p.fits(token, who.AuthorizedParty) {
		return nil, errBadCredential()
	}
	return &who, nil
}

// fits checks what the library leaves to its callers: the lifetime, and that the token was made for this server and not
// for another client of the issuer that names this one as an audience, too (OpenID Connect Core, 3.1.3.7, 3 to 5).
func (p *OIDC) fits(token *oidc.IDToken, authorizedParty string) bool {
	if token.IssuedAt.After(p.now().Add(leeway)) || token.Expiry.Sub(token.IssuedAt) > maxIDTokenLife {
		return false // a token without iat has the longest life of all
	}
	if authorizedParty == "" {
		return len(token.Audience) == 1
	}
	return authorizedParty == p.audience
}
