package connect

import (
	"fmt"
	"time"

	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// Tables with sealed credentials.
const (
	ConfigTable = "scm_configs"
	AppTable    = "scm_apps"
)

// Kinds of sealed values.
const (
	AccessToken   = "access_token"
	WebhookSecret = "webhook_secret"
	ClientSecret  = "client_secret"
	PrivateKey    = "private_key"
)

// secretGrace is how long the previous secret is accepted after a rotation: the host may repeat requests signed with
// it, and some are in flight.
const secretGrace = 24 * time.Hour

// Seals seals the credentials of these tables. A sealed value opens only for its own row and purpose.
type Seals struct{ Keyring *secret.Keyring }

func purpose(table, what string, deploymentID, id int64) []byte {
	return fmt.Appendf(nil, "%s/%d/%d/%s", table, deploymentID, id, what)
}

// Seal seals a value for a row; "" gives nil.
func (s Seals) Seal(table, what string, deploymentID, id int64, plain string) ([]byte, error) {
	if plain == "" {
		return nil, nil
	}
	return s.Keyring.Seal([]byte(plain), purpose(table, what, deploymentID, id))
}

// Open unseals a value of a row; nil gives "".
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

// WebhookSecrets unseals the secrets that a host may have used for a request that arrives now: the current one, and the
// previous one for secretGrace after the rotation (rotatedAt in microseconds; nil if there was none).
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
