package access

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	jose "github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
)

const (
	// fetchInterval is the shortest time between two requests to the issuer because of unknown key ids, signatures by
	// unknown keys, or failures.
	fetchInterval = 2 * time.Second
	// remoteKeysMaxAge is when known keys are fetched again, so that a key that the issuer withdrew becomes invalid.
	remoteKeysMaxAge = 5 * time.Minute
	// maxKeySet is the largest response of the issuer in bytes.
	maxKeySet = 1 << 20
)

// remoteKeys caches the public keys of an OpenID Connect issuer. The key set of the go-oidc library would send a
// request for every token with a bad signature, and keep withdrawn keys until such a token arrives.
type remoteKeys struct {
	issuer string
	client *http.Client
	log    *slog.Logger
	now    func() time.Time
	flight singleflight.Group

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	fetched time.Time // last success
	tried   time.Time
	failure error // of the last attempt
}

func newRemoteKeys(issuer string, client *http.Client, log *slog.Logger, now func() time.Time) *remoteKeys {
	return &remoteKeys{issuer: issuer, client: client, log: log, now: now}
}

// find returns the keys that may have signed a token with this key id, which may be empty. It returns none when the
// issuer has no such key, and an error when the issuer cannot be reached.
func (r *remoteKeys) find(ctx context.Context, keyID string) (publicKeys, error) {
	keys, fresh, mayFetch, failure := r.known(keyID)
	if len(keys) > 0 {
		if !fresh && mayFetch {
			r.flight.DoChan("", r.refresh) // no request waits: the known keys stay in use until the new ones arrive
		}
		return keys, nil
	}
	if !mayFetch {
		return nil, failure
	}
	select {
	case result := <-r.flight.DoChan("", r.refresh):
		if result.Err != nil {
			return nil, result.Err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	keys, _, _, failure = r.known(keyID)
	return keys, failure
}

// renewed returns the keys for a key id after a request to the issuer, which is left out if the last one was just now.
func (r *remoteKeys) renewed(ctx context.Context, keyID string) publicKeys {
	if _, _, mayFetch, _ := r.known(keyID); mayFetch {
		select {
		case <-r.flight.DoChan("", r.refresh): // it logs its failure
		case <-ctx.Done():
		}
	}
	keys, _, _, _ := r.known(keyID)
	return keys
}

// signers verifies the signature of one token. If none of the known keys has made it, the issuer may have published
// another key under the same id, so its keys are fetched again, within the limit of all fetches.
type signers struct {
	remote *remoteKeys
	keyID  string
	keys   publicKeys
}

// VerifySignature implements oidc.KeySet.
func (s *signers) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	payload, err := (&oidc.StaticKeySet{PublicKeys: s.keys}).VerifySignature(ctx, raw)
	if err == nil {
		return payload, nil
	}
	return (&oidc.StaticKeySet{PublicKeys: s.remote.renewed(ctx, s.keyID)}).VerifySignature(ctx, raw)
}

func (r *remoteKeys) known(keyID string) (keys publicKeys, fresh, mayFetch bool, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for _, key := range r.keys {
		// A key for encryption must not verify. A token without a key id is checked against all keys (OpenID Connect
		// Core, 10.1).
		if (keyID == "" || key.KeyID == keyID) && key.Use != "enc" {
			keys = append(keys, key.Key)
		}
	}
	return keys, now.Sub(r.fetched) < remoteKeysMaxAge, now.Sub(r.tried) >= fetchInterval, r.failure
}

// refresh ignores the cancellation of the request that caused it, because others wait for it too.
func (r *remoteKeys) refresh() (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), oidcTimeout)
	defer cancel()
	keys, err := fetchKeys(ctx, r.issuer, r.client)
	if err != nil {
		r.log.Warn("the keys of the OpenID Connect issuer cannot be fetched", "issuer", r.issuer, "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.tried, r.failure = now, err
	if err == nil {
		r.keys, r.fetched = keys, now
	}
	return nil, err
}

// fetchKeys discovers the URL of the issuer's keys (OpenID Connect Discovery) and reads them.
func fetchKeys(ctx context.Context, issuer string, client *http.Client) ([]jose.JSONWebKey, error) {
	ctx = oidc.ClientContext(ctx, client)
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	var discovered struct {
		JWKS string `json:"jwks_uri"`
	}
	if err := provider.Claims(&discovered); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	if discovered.JWKS == "" {
		return nil, errors.New("discovery: the configuration has no jwks_uri")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, discovered.JWKS, nil)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("keys: %s answers %s", discovered.JWKS, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxKeySet+1))
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	if len(body) > maxKeySet {
		return nil, fmt.Errorf("keys: the answer of %s is larger than %d bytes", discovered.JWKS, maxKeySet)
	}
	return parseKeys(body)
}

// parseKeys keeps public keys of known kinds. Others in the set must be ignored (RFC 7517, 5).
func parseKeys(body []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("keys: the response is not a JSON Web Key Set: %w", err)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(raw); err != nil {
			continue
		}
		// A symmetric key in a public document is not secret.
		if !key.IsPublic() || !key.Valid() {
			continue
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// publicKeys are the keys of a key set for one key id.
type publicKeys = []crypto.PublicKey
