package access

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// Audience is the aud claim of the JSON Web Tokens that this server issues.
	Audience = "palisade"
	// MaxTTL is the longest lifetime of such a token.
	MaxTTL = 24 * time.Hour
	// leeway is the tolerated clock difference between two nodes.
	leeway = 30 * time.Second
)

// Issuer issues and verifies the server's own JSON Web Tokens (ES256). All nodes of a server share its keys through the
// store and must have the same URL.
type Issuer struct {
	st   *store.Store
	key  *secret.Keyring
	url  string
	keys *verificationKeys
	now  func() time.Time
}

// NewIssuer returns the issuer with this URL (iss), which is the server's public URL. It can neither verify nor issue
// tokens before EnsureKey has created a key.
func NewIssuer(st *store.Store, key *secret.Keyring, publicURL string) *Issuer {
	i := &Issuer{st: st, key: key, url: strings.TrimRight(publicURL, "/"), now: time.Now}
	i.keys = &verificationKeys{st: st, now: func() time.Time { return i.now() }}
	return i
}

type claims struct {
	Email string `json:"email,omitempty"`
	jwt.RegisteredClaims
}

// Mint issues a token for the user with this e-mail address. The token is valid from now for ttl (up to MaxTTL, in
// whole seconds). Errors: INVALID_ARGUMENT for ttl, NOT_FOUND for the user.
func (i *Issuer) Mint(ctx context.Context, email string, ttl time.Duration) (string, error) {
	if ttl < time.Second || ttl > MaxTTL {
		return "", apierr.InvalidArgument("ttl", "ttl must be between 1s and %s, got %s", MaxTTL, ttl)
	}
	ctx = tenant.System(ctx)
	holder, err := i.st.Reader.User.Query().Where(user.Email(normalEmail(email))).Only(ctx)
	if ent.IsNotFound(err) {
		return "", apierr.NotFound("user %q not found", email)
	}
	if err != nil {
		return "", err
	}
	signer, err := i.signingKey(ctx)
	if err != nil {
		return "", err
	}
	now := i.now().Truncate(time.Second)
	t := jwt.NewWithClaims(jwt.SigningMethodES256, claims{
		Email: holder.Email,
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: i.url, Audience: jwt.ClaimStrings{Audience}, Subject: strconv.FormatInt(holder.ID, 10),
			IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(now.Add(ttl.Truncate(time.Second))), ID: rand.Text(),
		},
	})
	t.Header["kid"] = signer.id
	signed, err := t.SignedString(signer.private)
	if err != nil {
		return "", fmt.Errorf("sign the token: %w", err)
	}
	return signed, nil
}

// verify returns the user of a token of this issuer. Every invalid token gives the same UNAUTHENTICATED. Other errors
// come from the store.
func (i *Issuer) verify(ctx context.Context, raw, keyID string) (userID int64, err error) {
	key, err := i.keys.find(ctx, keyID)
	if err != nil {
		return 0, err
	}
	if key == nil {
		return 0, errBadCredential("no key of this server has the kid %q, or it was retired long ago", keyID)
	}
	var c claims
	parsed, err := jwt.ParseWithClaims(raw, &c, func(*jwt.Token) (any, error) { return key.public, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodES256.Alg()}), jwt.WithStrictDecoding(),
		jwt.WithIssuer(i.url), jwt.WithAudience(Audience), jwt.WithExpirationRequired(), jwt.WithNotBeforeRequired(),
		jwt.WithIssuedAt(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(i.now))
	if err != nil {
		return 0, errBadCredential("the JSON Web Token of this server is not valid: %w", err)
	}
	// crit names extensions that the verifier must understand (RFC 7515, 4.1.11). This server knows none.
	if _, critical := parsed.Header["crit"]; critical {
		return 0, errBadCredential("the JSON Web Token has crit")
	}
	// A leaked key must not be able to sign tokens that outlive its retirement.
	if c.IssuedAt == nil || c.ExpiresAt.Sub(c.IssuedAt.Time) > MaxTTL {
		return 0, errBadCredential("the JSON Web Token has no iat, or lives longer than %s", MaxTTL)
	}
	userID, err = strconv.ParseInt(c.Subject, 10, 64)
	if err != nil || userID <= 0 {
		return 0, errBadCredential("the sub of the JSON Web Token is no user: %v", err)
	}
	return userID, nil
}

// normalEmail is the stored form of an e-mail address.
func normalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }
