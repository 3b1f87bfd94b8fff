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
	// oidcTimeout limits the two requests that fetch the issuer's keys.
	oidcTimeout = 20 * time.Second
	// maxIDTokenLife is the longest time from iat to exp of an ID token. A right that an issuer withdraws from a user
	// ends at the latest when the last older token expires.
	maxIDTokenLife = 24 * time.Hour
)

// oidcAlgorithms are the accepted signature algorithms, regardless of what the issuer announces. None uses a shared
// secret, which would make every holder of the client secret an issuer, and "none" is never accepted.
var oidcAlgorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// OIDC verifies the ID tokens of one OpenID Connect issuer and finds their users. It fetches the issuer's keys when the
// first token arrives, so that the server starts without the issuer.
type OIDC struct {
	st       *store.Store
	issuer   string
	audience string
	signIn   SignIn
	trail    *audit.Trail
	keys     *remoteKeys
	log      *slog.Logger
	now      func() time.Time
	warned   warnedTokens
}

// OIDCOptions describe the trusted issuer.
type OIDCOptions struct {
	// Issuer is the URL of the issuer, exactly as in the iss claim of its tokens.
	Issuer string
	// Audience must be in the aud claim of a token. It is the client id of this server at the issuer.
	Audience string
	// SignIn decides which users of the issuer may become members.
	SignIn SignIn
	// Trail gets an entry for every membership that a sign-in changes. nil disables it.
	Trail *audit.Trail
	// Client sends the requests to the issuer. It must have a timeout.
	Client *http.Client
	// Log gets the failures to reach the issuer. nil means slog.Default().
	Log *slog.Logger
}

// NewOIDC checks the options and returns the verifier, without a request to the issuer. Errors name the wrong option.
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

// trustworthyURL refuses plain HTTP over a network: anyone who can change the responses can make keys for any user.
func trustworthyURL(issuer string) bool {
	u, err := url.Parse(issuer)
	return err == nil && u.RawQuery == "" && u.Fragment == "" && secureURL(issuer)
}

// secureURL accepts https, and http on this machine.
func secureURL(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// Check fetches the issuer's configuration and keys, for the doctor command. The error is for operators.
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

// identity is the content of a verified ID token.
type identity struct {
	Subject         string    `json:"sub"`
	Email           string    `json:"email"`
	EmailVerified   looseBool `json:"email_verified"`
	Name            string    `json:"name"`
	AuthorizedParty string    `json:"azp"`
	Nonce           string    `json:"nonce"`

	issuedAt time.Time
	claims   map[string]json.RawMessage // all claims
}

// looseBool accepts true and "true", because some issuers quote it.
type looseBool bool

// UnmarshalJSON reads everything else as false, which is the safe value.
func (b *looseBool) UnmarshalJSON(data []byte) error {
	*b = string(data) == "true" || string(data) == `"true"`
	return nil
}

// authenticate verifies an ID token and returns its user. SignIn decides whether a new user is created or refused.
func (p *OIDC) authenticate(ctx context.Context, raw, keyID string) (*Principal, error) {
	who, err := p.verify(ctx, raw, keyID, p.audience)
	if err != nil {
		return nil, err
	}
	return p.user(ctx, who)
}

// verify returns the identity in an ID token for an audience.
func (p *OIDC) verify(ctx context.Context, raw, keyID, audience string) (*identity, error) {
	keys, err := p.keys.find(ctx, keyID)
	if err != nil {
		return nil, apierr.Unavailable(err, "the OpenID Connect issuer cannot be reached to verify the token: try again")
	}
	if len(keys) == 0 {
		return nil, errBadCredential("%s publishes no key with the kid %q", p.issuer, keyID)
	}
	verifier := oidc.NewVerifier(p.issuer, &signers{remote: p.keys, keyID: keyID, keys: keys}, &oidc.Config{
		ClientID: audience, SupportedSigningAlgs: oidcAlgorithms,
		Now: func() time.Time { return p.now().Add(-leeway) }, // the library has no leeway for exp
	})
	token, err := verifier.Verify(ctx, raw)
	if err != nil {
		return nil, errBadCredential("the ID token is not valid: %w", err)
	}
	who := identity{issuedAt: token.IssuedAt}
	if err := errors.Join(token.Claims(&who), token.Claims(&who.claims)); err != nil {
		return nil, errBadCredential("the claims of the ID token cannot be read: %w", err)
	}
	if err := p.checkClaims(token, &who, audience); err != nil {
		return nil, errBadCredential("the ID token is not valid: %w", err)
	}
	return &who, nil
}

// isNumber reports whether a JSON value is a number. The library also accepts a time that is a string, which is not
// valid in a token (RFC 7519, 2).
func isNumber(value json.RawMessage) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// checkClaims checks what the library leaves to its callers: the lifetime, and that the token was issued to this server
// and not to another client that only lists this one as an audience (OpenID Connect Core, 3.1.3.7, 3 to 5).
func (p *OIDC) checkClaims(token *oidc.IDToken, who *identity, audience string) error {
	switch {
	case who.Subject == "":
		return errors.New("it has no sub")
	case !isNumber(who.claims["exp"]):
		return errors.New("its exp is no number")
	case token.IssuedAt.After(p.now().Add(leeway)):
		return fmt.Errorf("its iat, %s, is in the future", token.IssuedAt.UTC().Format(time.RFC3339))
	case token.Expiry.Sub(token.IssuedAt) > maxIDTokenLife: // a token without iat would have an unlimited lifetime
		return fmt.Errorf("it has no iat, or lives longer than %s", maxIDTokenLife)
	case who.AuthorizedParty == "" && len(token.Audience) != 1:
		return fmt.Errorf("it has %d audiences and no azp", len(token.Audience))
	case who.AuthorizedParty != "" && who.AuthorizedParty != audience:
		return fmt.Errorf("its azp is %q, want %q", who.AuthorizedParty, audience)
	}
	return nil
}
