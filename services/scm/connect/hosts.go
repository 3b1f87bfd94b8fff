// Package connect opens the source-code hosts of deployments with their stored credentials.
package connect

import (
	"context"
	"errors"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmapp"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/host"
)

const (
	// CallTimeout applies to one request to a host.
	CallTimeout = 15 * time.Second
	// maxAnswer is in bytes: a page of 100 GitHub repositories has about 600 KiB.
	maxAnswer = 8 << 20
	// maxRedirects: renamed organizations and repositories redirect once.
	maxRedirects = 3
)

// Limits apply to requests to hosts.
var Limits = egress.Limits{Timeout: CallTimeout, MaxResponse: maxAnswer, MaxRedirects: maxRedirects}

// Hosts opens the hosts of connections.
type Hosts struct {
	store  *store.Store
	seals  Seals
	egress *egress.Guard
	entra  string
}

// New opens hosts through the guard, with credentials that the keyring sealed. entra is the URL of Microsoft Entra ID,
// where applications of Azure DevOps sign in.
func New(st *store.Store, keyring *secret.Keyring, guard *egress.Guard, entra string) *Hosts {
	return &Hosts{store: st, seals: Seals{keyring}, egress: guard, entra: entra}
}

// Credentials is the credential of a configuration: an access token or, without one, an application.
type Credentials struct {
	ConfigID, DeploymentID int64
	Type                   scmv1.ScmType
	BaseURL, Namespace     string
	SealedToken            []byte
	AppID                  *int64
}

func credentialsOf(row *ent.ScmConfig) Credentials {
	return Credentials{
		ConfigID: row.ID, DeploymentID: row.DeploymentID, Type: TypeOf(row.Type), BaseURL: row.BaseURL, Namespace: row.Namespace,
		SealedToken: row.AccessToken, AppID: row.ScmAppID,
	}
}

// Open opens the host of a connection in the context's deployment. Errors are *host.Error, except for a credential that
// cannot be unsealed. For an application it sends requests to the host.
func (c *Hosts) Open(ctx context.Context, row *ent.ScmConfig) (host.Host, error) {
	return c.OpenWith(ctx, credentialsOf(row))
}

// OpenWith is Open for the credentials of a connection that may be deleted.
func (c *Hosts) OpenWith(ctx context.Context, with Credentials) (host.Host, error) {
	token, err := c.seals.Open(ConfigTable, AccessToken, with.DeploymentID, with.ConfigID, with.SealedToken)
	if err != nil {
		return nil, err
	}
	h, err := host.Open(with.Type, with.BaseURL, token, c.egress.Client(Limits))
	switch {
	case err != nil:
		return nil, err
	case token != "":
		return h, nil
	case with.AppID == nil:
		return nil, ErrNoCredential()
	}
	app, err := c.store.Reader.ScmApp.Query().Where(scmapp.ID(*with.AppID)).Only(ctx)
	if ent.IsNotFound(err) || err == nil && len(app.PrivateKey) == 0 {
		return nil, ErrNoCredential()
	}
	if err != nil {
		return nil, err
	}
	if TypeOf(app.ScmType) == scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS {
		return c.OpenPrincipal(ctx, app)
	}
	acting, err := c.OpenApp(app)
	if err != nil {
		return nil, err
	}
	found, err := acting.InstalledIn(ctx, with.Namespace)
	if err != nil {
		return nil, err
	}
	if err := c.NoteInstallation(ctx, app, with.Namespace, found); err != nil {
		return nil, err
	}
	return acting.OpenInstalled(ctx, found)
}

// Callable rejects connections that a job could not use: no credential, or an unsupported type of host.
func Callable(row *ent.ScmConfig) error {
	if err := host.Callable(TypeOf(row.Type), row.BaseURL); err != nil {
		return err
	}
	if !HasCredential(row) {
		return ErrNoCredential()
	}
	return nil
}

// HasCredential reports whether a connection has an access token or an application.
func HasCredential(row *ent.ScmConfig) bool { return len(row.AccessToken) > 0 || row.ScmAppID != nil }

// ErrNoCredential is the error of a connection without a credential.
func ErrNoCredential() error {
	return &host.Error{Kind: host.Unauthorized, Text: "no access token is stored for this connection: set accessToken"}
}

// OpenApp opens a registered application, authenticated as itself.
func (c *Hosts) OpenApp(row *ent.ScmApp) (*host.App, error) {
	key, err := c.seals.Open(AppTable, PrivateKey, row.DeploymentID, row.ID, row.PrivateKey)
	if err != nil {
		return nil, err
	}
	return host.OpenApp(TypeOf(row.ScmType), row.BaseURL, row.AppID, key, c.egress.Client(Limits)), nil
}

// OpenPrincipal signs in as an application of Azure DevOps.
func (c *Hosts) OpenPrincipal(ctx context.Context, row *ent.ScmApp) (host.Host, error) {
	key, err := c.seals.Open(AppTable, PrivateKey, row.DeploymentID, row.ID, row.PrivateKey)
	if err != nil {
		return nil, err
	}
	principal := host.Principal{SignIn: c.entra, Tenant: row.TenantID, Client: row.ClientID, Key: key}
	return principal.Open(ctx, row.BaseURL, c.egress.Client(Limits))
}

// TypeOf converts a stored type.
func TypeOf(word string) scmv1.ScmType { return scmv1.ScmType(scmv1.ScmType_value[word]) }

// ErrorText is a host error's text for people; empty for internal errors.
func ErrorText(err error) string {
	var e *host.Error
	if errors.As(err, &e) {
		return e.Text
	}
	return ""
}
