package scm

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// The tables whose credentials are sealed, and what the values are.
const (
	configTable = "scm_configs"

	accessTokenSecret = "access_token"
	webhookSecret     = "webhook_secret"
)

// secretGrace is how long after a rotation the secret before is still accepted: the host repeats calls that it signed
// with it, and has some on their way.
const secretGrace = 24 * time.Hour

// seals seals the credentials of this package's tables: each opens only for its row and its purpose.
type seals struct{ keyring *secret.Keyring }

func purpose(table, what string, deploymentID, id int64) []byte {
	return fmt.Appendf(nil, "%s/%d/%d/%s", table, deploymentID, id, what)
}

// seal seals a value for a row; "" gives nil, as which it is stored.
func (s seals) seal(table, what string, deploymentID, id int64, plain string) ([]byte, error) {
	if plain == "" {
		return nil, nil
	}
	return s.keyring.Seal([]byte(plain), purpose(table, what, deploymentID, id))
}

// open returns what was sealed for a row; "" for nil.
func (s seals) open(table, what string, deploymentID, id int64, sealed []byte) (string, error) {
	if len(sealed) == 0 {
		return "", nil
	}
	plain, err := s.keyring.Unseal(sealed, purpose(table, what, deploymentID, id))
	if err != nil {
		return "", fmt.Errorf("%s of row %d of %s: %w", what, id, table, err)
	}
	return string(plain), nil
}

// webhookSecrets opens the secrets with which a host may have signed a call that arrives now: the row's own, and the one
// before it for a while after the rotation (rotatedAt in microseconds; nil when there was none).
func (s seals) webhookSecrets(table string, deploymentID, id int64, current, previous []byte, rotatedAt *int64) ([]string, error) {
	sealed := [][]byte{current}
	if rotatedAt != nil && time.Since(store.Time(*rotatedAt)) < secretGrace {
		sealed = append(sealed, previous)
	}
	var out []string
	for _, value := range sealed {
		plain, err := s.open(table, webhookSecret, deploymentID, id, value)
		if err != nil {
			return nil, err
		}
		if plain != "" {
			out = append(out, plain)
		}
	}
	return out, nil
}

// randomText is 32 random bytes as text for URLs and headers: a webhook's key or secret.
func randomText() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}
