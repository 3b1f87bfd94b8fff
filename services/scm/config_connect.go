package scm

import (
	"context"
	"errors"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmapp"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/host"
)

const (
	// callTimeout is for one call of a host.
	callTimeout = 15 * time.Second
	// requestTimeout is for all calls that one of our RPCs makes.
	requestTimeout = 30 * time.Second
	// maxAnswer is in bytes: a page of 100 repositories of GitHub has about 600 KiB.
	maxAnswer = 8 << 20
	// maxRedirects: renamed organizations and repositories redirect once.
	maxRedirects = 3
)

// hostLimits bound the calls of hosts.
var hostLimits = egress.Limits{Timeout: callTimeout, MaxResponse: maxAnswer, MaxRedirects: maxRedirects}

// Connections opens the hosts of configurations. All service groups of this package share it.
type Connections struct {
	store     *store.Store
	seals     seals
	egress    *egress.Guard
	publicURL string
}

// NewConnections opens hosts through the guard, with credentials that the keyring sealed. publicURL is where hosts reach
// our HTTP API, without a slash at the end.
func NewConnections(st *store.Store, keyring *secret.Keyring, guard *egress.Guard, publicURL string) *Connections {
	return &Connections{store: st, seals: seals{keyring}, egress: guard, publicURL: publicURL}
}

// callback is the URL of the receiver of webhooks with a key.
func (c *Connections) callback(key string) string { return c.publicURL + "/api/scm/webhooks/" + key }

// credentials are what a configuration calls its host with: an access token or, without one, an application.
type credentials struct {
	configID, deploymentID int64
	scmType                scmv1.ScmType
	baseURL, namespace     string
	sealedToken            []byte
	appID                  *int64
}

func credentialsOf(row *ent.ScmConfig) credentials {
	return credentials{
		configID: row.ID, deploymentID: row.DeploymentID, scmType: scmType(row.Type), baseURL: row.BaseURL, namespace: row.Namespace,
		sealedToken: row.AccessToken, appID: row.ScmAppID,
	}
}

// open opens the host of a configuration. Its errors are those of package host, but for a credential that cannot be
// unsealed. With an application it calls the host.
func (c *Connections) open(ctx context.Context, row *ent.ScmConfig) (host.Host, error) {
	return c.openWith(ctx, credentialsOf(row))
}

func (c *Connections) openWith(ctx context.Context, with credentials) (host.Host, error) {
	token, err := c.seals.open(configTable, accessTokenSecret, with.deploymentID, with.configID, with.sealedToken)
	if err != nil {
		return nil, err
	}
	h, err := host.Open(with.scmType, with.baseURL, token, c.egress.Client(hostLimits))
	switch {
	case err != nil:
		return nil, err
	case token != "":
		return h, nil
	case with.appID == nil:
		return nil, errNoCredential()
	}
	app, err := c.store.Reader.ScmApp.Query().Where(scmapp.ID(*with.appID)).Only(ctx)
	if ent.IsNotFound(err) || err == nil && len(app.PrivateKey) == 0 {
		return nil, errNoCredential()
	}
	if err != nil {
		return nil, err
	}
	acting, err := c.openApp(app)
	if err != nil {
		return nil, err
	}
	return acting.InstallationIn(ctx, with.namespace)
}

func errNoCredential() error {
	return &host.Error{Kind: host.Unauthorized, Text: "no access token is stored for this connection: set accessToken"}
}

// scmType reads the word of a column.
func scmType(word string) scmv1.ScmType { return scmv1.ScmType(scmv1.ScmType_value[word]) }

// hostError is the answer to a caller whose request needed a host that failed. What passes by itself is UNAVAILABLE, what
// somebody must put right is FAILED_PRECONDITION.
func hostError(err error) error {
	text := err.Error()
	switch {
	case host.Is(err, host.RateLimited), host.Is(err, host.TimedOut), host.Is(err, host.Unreachable), host.Is(err, host.Failed):
		return apierr.Unavailable(err, "%s", text)
	case hostText(err) != "":
		return apierr.FailedPrecondition("%s", text)
	}
	return err
}

// hostText is what a host's error says to people; empty for errors of our own.
func hostText(err error) string {
	var e *host.Error
	if errors.As(err, &e) {
		return e.Text
	}
	return ""
}
