package scm

import (
	"crypto/rand"
	"encoding/base64"
	"time"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

// requestTimeout is the timeout for all host requests of one RPC.
const requestTimeout = 30 * time.Second

// Connections holds the shared dependencies of this package's service groups.
type Connections struct {
	*connect.Hosts
	store     *store.Store
	seals     connect.Seals
	egress    *egress.Guard
	publicURL string
}

// NewConnections connects to hosts through the guard, with credentials sealed by the keyring. entra is the URL of
// Microsoft Entra ID, publicURL the public URL of the HTTP API, without a trailing slash.
func NewConnections(st *store.Store, keyring *secret.Keyring, guard *egress.Guard, entra, publicURL string) *Connections {
	return &Connections{
		Hosts: connect.New(st, keyring, guard, entra), store: st, seals: connect.Seals{Keyring: keyring}, egress: guard, publicURL: publicURL,
	}
}

// callback is the URL of the webhook receiver for a key.
func (c *Connections) callback(key string) string { return c.publicURL + "/api/scm/webhooks/" + key }

// hostError converts a host's error to an RPC error. Temporary errors are UNAVAILABLE; errors that a person must fix
// are FAILED_PRECONDITION.
func hostError(err error) error {
	text := err.Error()
	switch {
	case host.Is(err, host.RateLimited), host.Is(err, host.TimedOut), host.Is(err, host.Unreachable), host.Is(err, host.Failed):
		return apierr.Unavailable(err, "%s", text)
	case connect.ErrorText(err) != "":
		return apierr.FailedPrecondition("%s", text)
	}
	return err
}

// randomText returns 32 random bytes as text for URLs and headers: a webhook's key or secret.
func randomText() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: crypto/rand aborts the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}
