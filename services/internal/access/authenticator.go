package access

import (
	"context"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/internal/store"
)

// Authenticator verifies credentials. It caches nothing between requests, so a revocation holds from the next request
// on every node. The look-up of a token costs less than the rest of any request.
type Authenticator struct {
	st     *store.Store
	tokens *lookups
	issuer *Issuer
	oidc   *OIDC
	// sessions are the sessions of the console.
	sessions *Sessions
	usage    *usage
	now      func() time.Time
}

// NewAuthenticator returns an authenticator for API tokens, for JSON Web Tokens of issuer, for sessions of the console
// and, unless oidc is nil, for ID tokens of the OpenID Connect issuer. It records the last use of tokens in the
// background until Close.
func NewAuthenticator(st *store.Store, issuer *Issuer, oidc *OIDC, sessions *Sessions, log *slog.Logger) *Authenticator {
	a := &Authenticator{
		st: st, issuer: issuer, oidc: oidc, sessions: sessions,
		usage: newUsage(st, log, "API tokens", recordTokenUses), now: time.Now,
	}
	a.tokens = newLookups(func(ctx context.Context, hash []byte) (*tokenRow, error) { return findToken(ctx, st, hash) })
	a.usage.start()
	return a
}

// Close writes the pending last uses of tokens, within the deadline of ctx, and stops the background work.
func (a *Authenticator) Close(ctx context.Context) error { return a.usage.close(ctx) }

// Authenticate verifies the value of an Authorization header.
//
// Errors: UNAUTHENTICATED, with the same text for malformed, unknown, expired and revoked credentials;
// PERMISSION_DENIED for a valid ID token of a user who may not become a member, and for a token whose creator is no
// member of its deployment any more; UNAVAILABLE while the keys of the
// OpenID Connect issuer cannot be fetched. Any other error comes from the store.
func (a *Authenticator) Authenticate(ctx context.Context, header string) (*Principal, error) {
	if header == "" {
		return nil, errNoCredential()
	}
	credential, ok := parseBearer(header)
	if !ok {
		return nil, errBadCredential("the Authorization header is not Bearer, one space and a credential")
	}
	switch kindOf(credential) {
	case opaqueToken:
		return a.token(ctx, credential)
	case webToken:
		return a.webToken(ctx, credential)
	default:
		return nil, errBadCredential("the credential is malformed")
	}
}

// AuthenticateSession verifies the secret of a session's cookie. The user acts like with a JSON Web Token. use is false
// for requests that do not show that somebody uses the console.
//
// Errors: UNAUTHENTICATED, with the same text for a malformed, unknown, ended and revoked session. Any other error
// comes from the store.
func (a *Authenticator) AuthenticateSession(ctx context.Context, secret string, use bool) (*Principal, error) {
	p, err := a.sessions.User(ctx, secret)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errNoSession()
	}
	if use {
		a.sessions.used(p)
	}
	return p, nil
}

// token always does one hash, one look-up and one comparison before it decides, so that its time does not depend on the
// token's state.
func (a *Authenticator) token(ctx context.Context, value string) (*Principal, error) {
	hash := hashToken(value)
	row, err := a.tokens.of(ctx, hash)
	if err != nil {
		return nil, err
	}
	cause := "no API token has this value"
	if row != nil {
		cause = fmt.Sprintf("the API token %d was revoked or has expired", row.ID)
	} else {
		row = &tokenRow{Hash: make([]byte, len(hash)), Scopes: []byte("[]")}
	}
	p, err := row.principal()
	if err != nil {
		return nil, err
	}
	now := store.Micros(a.now())
	alive := subtle.ConstantTimeCompare(row.Hash, hash) == 1
	alive = !row.RevokedAt.Valid && alive
	alive = (!row.ExpiresAt.Valid || row.ExpiresAt.Int64 > now) && alive
	if !alive {
		return nil, errBadCredential("%s", cause)
	}
	if row.authority().orphaned() {
		return nil, errNoCreator()
	}
	a.usage.record(row.ID, row.LastUsedAt.Int64, now)
	return p, nil
}

// webToken passes a JSON Web Token to the issuer that the token names. That issuer verifies it.
func (a *Authenticator) webToken(ctx context.Context, raw string) (*Principal, error) {
	var unverified jwt.RegisteredClaims
	header, _, err := jwt.NewParser().ParseUnverified(raw, &unverified)
	if err != nil {
		return nil, errBadCredential("the JSON Web Token cannot be read: %w", err)
	}
	keyID, _ := header.Header["kid"].(string)
	switch {
	case unverified.Issuer == "":
		return nil, errBadCredential("the JSON Web Token has no iss")
	case unverified.Issuer == a.issuer.url:
		id, err := a.issuer.verify(ctx, raw, keyID)
		if err != nil {
			return nil, err
		}
		return found(findUser(ctx, a.st, user.And(user.ID(id), signedBy(keyID))))
	case a.oidc != nil && unverified.Issuer == a.oidc.issuer:
		return a.oidc.authenticate(ctx, raw, keyID)
	case a.oidc != nil:
		return nil, errBadCredential("the iss of the JSON Web Token is %q, which is neither this server (%q) nor oidc-issuer (%q)",
			unverified.Issuer, a.issuer.url, a.oidc.issuer)
	default:
		return nil, errBadCredential("the iss of the JSON Web Token is %q, want this server, %q", unverified.Issuer, a.issuer.url)
	}
}

// found turns a deleted user into the error of every other bad credential.
func found(p *Principal, err error) (*Principal, error) {
	if err == nil && p == nil {
		return nil, errBadCredential("the user of the JSON Web Token was deleted, or its key was retired")
	}
	return p, err
}
