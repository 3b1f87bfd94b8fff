package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"entgo.io/ent/dialect/sql"
	jose "github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/signingkey"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// reloadInterval is the shortest time between two reads of the store because of unknown key ids. Other nodes rotate
	// keys, but anyone can send tokens with invented key ids.
	reloadInterval = time.Second
	// keysMaxAge is when the keys are read again even without an unknown id, to notice retired keys.
	keysMaxAge = 30 * time.Second
)

// verificationKey is the public half of a signing key.
type verificationKey struct {
	id        string
	public    *ecdsa.PublicKey
	retiredAt *int64
}

// verificationKeys keeps the public keys of the store in memory.
type verificationKeys struct {
	st  *store.Store
	now func() time.Time

	mu   sync.Mutex // held during a reload, because waiting callers need its result
	keys []verificationKey
	read time.Time
}

// find returns nil for a key id that is unknown or was retired long ago.
func (v *verificationKeys) find(ctx context.Context, keyID string) (*verificationKey, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	key, age := v.pick(keyID), now.Sub(v.read)
	if (key == nil && age >= reloadInterval) || age >= keysMaxAge || age < 0 {
		if err := v.reload(ctx, now); err != nil {
			return nil, err
		}
		key = v.pick(keyID)
	}
	if key == nil || retiredLongAgo(key.retiredAt, now) {
		return nil, nil
	}
	return key, nil
}

func (v *verificationKeys) pick(keyID string) *verificationKey {
	for i := range v.keys {
		if v.keys[i].id == keyID {
			return &v.keys[i]
		}
	}
	return nil
}

func (v *verificationKeys) reload(ctx context.Context, now time.Time) error {
	rows, err := v.st.Reader.SigningKey.Query().
		Select(signingkey.FieldKid, signingkey.FieldPublicKey, signingkey.FieldRetiredAt).
		Order(signingkey.ByCreatedAt(sql.OrderDesc())).All(tenant.System(ctx))
	if err != nil {
		return fmt.Errorf("read the signing keys: %w", err)
	}
	keys := make([]verificationKey, 0, len(rows))
	for _, row := range rows {
		key, err := newVerificationKey(row)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	v.keys, v.read = keys, now
	return nil
}

func newVerificationKey(row *ent.SigningKey) (verificationKey, error) {
	parsed, err := x509.ParsePKIXPublicKey(row.PublicKey)
	if err != nil {
		return verificationKey{}, fmt.Errorf("signing key %s: %w", row.Kid, err)
	}
	public, ok := parsed.(*ecdsa.PublicKey)
	if !ok {
		return verificationKey{}, fmt.Errorf("signing key %s is a %T, not an ECDSA key", row.Kid, parsed)
	}
	return verificationKey{id: row.Kid, public: public, retiredAt: row.RetiredAt}, nil
}

// usable returns all keys that verify now. It reads the store again when they are too old.
func (v *verificationKeys) usable(ctx context.Context) ([]verificationKey, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	if age := now.Sub(v.read); age >= reloadInterval || age < 0 {
		if err := v.reload(ctx, now); err != nil {
			return nil, err
		}
	}
	var usable []verificationKey
	for _, key := range v.keys {
		if !retiredLongAgo(key.retiredAt, now) {
			usable = append(usable, key)
		}
	}
	return usable, nil
}

// JWKS serves the public keys of the issuer (RFC 7517) for /.well-known/jwks.json, without authentication.
func (i *Issuer) JWKS() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			apierr.WriteHTTP(w, apierr.MethodNotAllowed(r.Method, "GET, HEAD"), "")
			return
		}
		body, err := i.jwks(r.Context())
		if err != nil {
			apierr.WriteHTTP(w, apierr.Unavailable(err, "the keys cannot be read now"), "")
			return
		}
		w.Header().Set("Content-Type", "application/jwk-set+json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Header().Set("Cache-Control", "public, max-age="+strconv.Itoa(int(keysMaxAge.Seconds())))
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(body) // the client has gone; net/http drops the body of a response to HEAD
	})
}

func (i *Issuer) jwks(ctx context.Context) ([]byte, error) {
	keys, err := i.keys.usable(ctx)
	if err != nil {
		return nil, err
	}
	set := jose.JSONWebKeySet{Keys: make([]jose.JSONWebKey, len(keys))}
	for n, key := range keys {
		set.Keys[n] = jose.JSONWebKey{Key: key.public, KeyID: key.id, Algorithm: jwt.SigningMethodES256.Alg(), Use: "sig"}
	}
	return json.Marshal(set)
}
