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

// requestTimeout is for all calls that one of our RPCs makes.
const requestTimeout = 30 * time.Second

// Connections is what all service groups of this package share.
type Connections struct {
	*connect.Hosts
	store     *store.Store
	seals     connect.Seals
	egress    *egress.Guard
	publicURL string
}

// NewConnections opens hosts through the guard, with credentials that the keyring sealed. publicURL is where hosts
// reach our HTTP API, without a slash at the end.
func NewConnections(st *store.Store, keyring *secret.Keyring, guard *egress.Guard, publicURL string) *Connections {
	return &Connections{
		Hosts: connect.New(st, keyring, guard), store: st, seals: connect.Seals{Keyring: keyring}, egress: guard, publicURL: publicURL,
	}
}

// callback is the URL of the receiver of webhooks with a key.
func (c *Connections) callback(key string) string { return c.publicURL + "/api/scm/webhooks/" + key }

// hostError is the answer to a caller whose request needed a host that failed. What passes by itself is UNAVAILABLE,
// what somebody must put right is FAILED_PRECONDITION.
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

// randomText is 32 random bytes as text for URLs and headers: a webhook's key or secret.
func randomText() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}
