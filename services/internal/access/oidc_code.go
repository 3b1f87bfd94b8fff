package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

// endpointsMaxAge is when the endpoints of the issuer are fetched again.
const endpointsMaxAge = time.Hour

// The errors of a sign-in with the issuer, in addition to those of a bearer ID token.
var (
	// ErrIssuerUnreachable means that the issuer does not answer, or not as OpenID Connect says.
	ErrIssuerUnreachable = errors.New("the OpenID Connect issuer cannot be reached")
	// ErrAnswerRefused means that the answer of the issuer does not belong to the sign-in that the browser began, or was
	// used before.
	ErrAnswerRefused = errors.New("the answer of the OpenID Connect issuer does not belong to this sign-in")
)

// IssuerError is what the issuer says about a sign-in that it refused.
type IssuerError struct {
	// Code is an error code of OAuth 2.0, such as access_denied, and Description a text for developers, or "".
	Code, Description string
}

// Error implements error.
func (e *IssuerError) Error() string {
	return strings.TrimSpace("the OpenID Connect issuer answers " + e.Code + " " + e.Description)
}

// Attempt is a sign-in that a browser has begun. Its values are secret, and the browser brings them back.
type Attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // of PKCE
}

// CodeFlow signs people in to the console with the authorization code flow of an OpenID Connect issuer.
type CodeFlow struct {
	oidc   *OIDC
	client *http.Client
	config oauth2.Config

	mu       sync.Mutex
	provider *discovered // of the last success
	fetched  time.Time   // last success
	tried    time.Time
	failure  error // of the last attempt
}

// CodeFlowOptions describe the client at the issuer.
type CodeFlowOptions struct {
	ClientID string
	// ClientSecret is empty for a public client.
	ClientSecret string
	Scopes       []string
	// RedirectURL is where the issuer sends the browser back.
	RedirectURL string
}

// NewCodeFlow returns the sign-in for users of the issuer. It fetches the issuer's configuration at the first sign-in.
func (p *OIDC) NewCodeFlow(o CodeFlowOptions) *CodeFlow {
	return &CodeFlow{oidc: p, client: p.keys.client, config: oauth2.Config{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, Scopes: o.Scopes, RedirectURL: o.RedirectURL,
	}}
}

// Begin returns a new attempt, and the URL at the issuer where the browser continues. Errors: ErrIssuerUnreachable.
func (f *CodeFlow) Begin(ctx context.Context) (Attempt, string, error) {
	config, _, err := f.current(ctx)
	if err != nil {
		return Attempt{}, "", err
	}
	state, _ := newSecret()
	nonce, _ := newSecret()
	a := Attempt{State: state, Nonce: nonce, Verifier: oauth2.GenerateVerifier()}
	return a, config.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// Finish verifies the parameters with which the issuer sent the browser back, and returns the user. SignIn decides
// whether a new user is created or refused.
//
// Errors: ErrAnswerRefused, ErrIssuerUnreachable, an *IssuerError; PERMISSION_DENIED for a user who may not become a
// member. Any other error comes from the store.
func (f *CodeFlow) Finish(ctx context.Context, a Attempt, answer url.Values) (*Principal, error) {
	if a.State == "" || !sameText(answer.Get("state"), a.State) {
		return nil, fmt.Errorf("%w: another state", ErrAnswerRefused)
	}
	config, provider, err := f.current(ctx)
	if err != nil {
		return nil, err
	}
	// An attacker's issuer, which the browser was sent to instead, could pass on a code of this one (RFC 9207).
	if named := answer.Get("iss"); named != f.oidc.issuer && (named != "" || provider.NamesItself) {
		return nil, fmt.Errorf("%w: it is of the issuer %q", ErrAnswerRefused, named)
	}
	if code := answer.Get("error"); code != "" {
		return nil, &IssuerError{Code: code, Description: answer.Get("error_description")}
	}
	raw, err := f.redeem(ctx, config, answer.Get("code"), a.Verifier)
	if err != nil {
		return nil, err
	}
	return f.user(ctx, raw, a.Nonce)
}

// redeem exchanges a code for an ID token.
func (f *CodeFlow) redeem(ctx context.Context, config *oauth2.Config, code, verifier string) (raw string, err error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, f.client), oidcTimeout)
	defer cancel()
	tokens, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	var refusal *oauth2.RetrieveError
	switch {
	case errors.As(err, &refusal) && refusal.ErrorCode == "invalid_grant": // unknown, expired or used before
		return "", fmt.Errorf("%w: %w", ErrAnswerRefused, &IssuerError{Code: refusal.ErrorCode, Description: refusal.ErrorDescription})
	case errors.As(err, &refusal) && refusal.ErrorCode != "":
		return "", &IssuerError{Code: refusal.ErrorCode, Description: refusal.ErrorDescription}
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrIssuerUnreachable, err)
	}
	raw, _ = tokens.Extra("id_token").(string)
	if raw == "" {
		return "", fmt.Errorf("%w: its answer has no id_token", ErrIssuerUnreachable)
	}
	return raw, nil
}

// user verifies an ID token as if it were a bearer token, and that it was issued for this sign-in.
func (f *CodeFlow) user(ctx context.Context, raw, nonce string) (*Principal, error) {
	header, _, err := jwt.NewParser().ParseUnverified(raw, jwt.MapClaims{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswerRefused, err)
	}
	keyID, _ := header.Header["kid"].(string)
	who, err := f.oidc.verify(ctx, raw, keyID, f.config.ClientID)
	if apierr.Is(err, errorsv1.Reason_REASON_UNAUTHENTICATED) {
		return nil, fmt.Errorf("%w: %w", ErrAnswerRefused, apierr.Cause(err)) // the text for callers names no cause
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIssuerUnreachable, err)
	}
	if !sameText(who.Nonce, nonce) {
		return nil, fmt.Errorf("%w: another nonce", ErrAnswerRefused)
	}
	return f.oidc.user(ctx, who)
}

func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// discovered is what the issuer's configuration says about the code flow.
type discovered struct {
	endpoint oauth2.Endpoint
	// NamesItself: answers have the parameter iss.
	NamesItself bool     `json:"authorization_response_iss_parameter_supported"`
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
}

// current returns the client with the issuer's endpoints. It fetches them again after a while; if that fails, the known
// ones stay in use.
func (f *CodeFlow) current(ctx context.Context) (*oauth2.Config, *discovered, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.oidc.now()
	if now.Sub(f.fetched) >= endpointsMaxAge && now.Sub(f.tried) >= fetchInterval {
		f.tried = now
		found, err := f.discover(ctx)
		if f.failure = err; err == nil {
			f.provider, f.fetched = found, now
		} else {
			f.oidc.log.Warn("the configuration of the OpenID Connect issuer cannot be fetched", "issuer", f.oidc.issuer, "error", err)
		}
	}
	if f.provider == nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrIssuerUnreachable, f.failure)
	}
	config := f.config
	config.Endpoint = f.provider.endpoint
	return &config, f.provider, nil
}

// discover reads the issuer's configuration. It ignores the cancellation of the request that caused it, because others
// wait for it too.
func (f *CodeFlow) discover(ctx context.Context) (*discovered, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.WithoutCancel(ctx), f.client), oidcTimeout)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, f.oidc.issuer)
	if err != nil {
		return nil, err
	}
	found := &discovered{endpoint: provider.Endpoint()}
	if err := provider.Claims(found); err != nil {
		return nil, err
	}
	for name, address := range map[string]string{"authorization_endpoint": found.endpoint.AuthURL, "token_endpoint": found.endpoint.TokenURL} {
		if !secureURL(address) {
			return nil, fmt.Errorf("its %s must be an https:// URL (http:// only on this machine), got %q", name, address)
		}
	}
	found.endpoint.AuthStyle = f.authStyle(found.AuthMethods)
	return found, nil
}

// authStyle is how the client authenticates. The library would find out by trying, which can use a code up.
func (f *CodeFlow) authStyle(supported []string) oauth2.AuthStyle {
	if f.config.ClientSecret == "" || len(supported) > 0 && !slices.Contains(supported, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}
