package connect

import (
	"fmt"
	"time"

	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// The tables whose credentials are sealed.
const (
	ConfigTable = "scm_configs"
	AppTable    = "scm_apps"
)

// What the sealed values are.
const (
	AccessToken   = "access_token"
	WebhookSecret = "webhook_secret"
	ClientSecret  = "client_secret"
	PrivateKey    = "private_key"
)

// secretGrace is how long after a rotation the secret before is still accepted: the host repeats calls that it signed
// with it, and has some on their way.
const secretGrace = 24 * time.Hour

// Seals seals the credentials of these tables: each opens only for its row and its purpose.
type Seals struct{ Keyring *secret.Keyring }

func purpose(table, what string, deploymentID, id int64) []byte {
	return fmt.Appendf(nil, "%s/%d/%d/%s", table, deploymentID, id, what)
}

// Seal seals a value for a row; "" gives nil, as which it is stored.
func (s Seals) Seal(table, what string, deploymentID, id int64, plain string) ([]byte, error) {
	if plain == "" {
		return nil, nil
	}
	return s.Keyring.Seal([]byte(plain), purpose(table, what, deploymentID, id))
}

// Open returns what was sealed for a row; "" for nil.
func (s Seals) Open(table, what string, deploymentID, id int64, sealed []byte) (string, error) {
	if len(sealed) == 0 {
		return "", nil
	}
	plain, err := s.Keyring.Unseal(sealed, purpose(table, what, deploymentID, id))
	if err != nil {
		return "", fmt.Errorf("%s of row %d of %s: %w", what, id, table, err)
	}
	return string(plain), nil
}

// WebhookSecrets opens the secrets with which a host may have signed a call that arrives now: the row's own, and the
// one before it for a while after the rotation (rotatedAt in microseconds; nil when there was none).
func (s Seals) WebhookSecrets(table string, deploymentID, id int64, current, previous []byte, rotatedAt *int64) ([]string, error) {
	sealed := [][]byte{current}
	if rotatedAt != nil && time.Since(store.Time(*rotatedAt)) < secretGrace {
		sealed = append(sealed, previous)
	}
	var out []string
	for _, value := range sealed {
		plain, err := s.Open(table, WebhookSecret, deploymentID, id, value)
		if err != nil {
			return nil, err
		}
		if plain != "" {
			out = append(out, plain)
		}
	}
	return out, nil
}
