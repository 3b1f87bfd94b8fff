package scm

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmconfig"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/tasktoken"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

// Configurations is the service group "SCM configurations".
type Configurations struct {
	scmv1.UnimplementedScmServiceServer
	*Connections
	webhooks *Webhooks
	jobs     *jobs.Jobs
	tasks    *tasktoken.Tokens
}

// NewConfigurations serves configurations.
func NewConfigurations(c *Connections, j *jobs.Jobs) *Configurations {
	return &Configurations{Connections: c, webhooks: NewWebhooks(c), jobs: j, tasks: tasktoken.New(c.store, c.seals.Keyring, c.publicURL)}
}

// CreateScmConfig creates a configuration, and its webhook if requested.
func (s *Configurations) CreateScmConfig(ctx context.Context, r *scmv1.CreateScmConfigRequest) (*scmv1.CreateScmConfigResponse, error) {
	baseURL, err := s.baseURL(r.GetType(), r.GetBaseUrl())
	if err != nil {
		return nil, err
	}
	if err := checkNamespace(r.GetType(), r.GetNamespace()); err != nil {
		return nil, err
	}
	var row *ent.ScmConfig
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := checkFree(ctx, tx, 0, r.GetType().String(), baseURL, r.GetNamespace()); err != nil {
			return err
		}
		app, token, err := s.credentialFrom(ctx, tx, r, baseURL)
		if err != nil {
			return err
		}
		now := store.Now()
		row, err = tx.ScmConfig.Create().SetType(r.GetType().String()).SetNamespace(r.GetNamespace()).SetSourceID(r.GetSourceId()).
			SetBaseURL(baseURL).SetNillableScmAppID(app.id()).SetInstalled(app.installedIn(r.GetNamespace())).
			SetSuspended(app.suspendedIn(r.GetNamespace())).SetAutoScan(r.GetAutoScan()).SetDiffEnabled(r.GetAutoScanSettings().GetDiffEnabled()).
			SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return taken(err, r.GetType().String(), baseURL, r.GetNamespace())
		}
		sealed, err := s.seals.Seal(connect.ConfigTable, connect.AccessToken, row.DeploymentID, row.ID, token)
		if err != nil {
			return err
		}
		if sealed != nil {
			if row, err = row.Update().SetAccessToken(sealed).Save(ctx); err != nil {
				return err
			}
		}
		return s.Audited(ctx, tx, nil, row)
	})
	if err != nil {
		return nil, err
	}
	if r.GetSubscribe() {
		if row, err = s.webhooks.applyWebhook(ctx, row, true); err != nil {
			return nil, err
		}
	}
	config, err := connect.ConfigMessage(ctx, s.store.Reader, row)
	return &scmv1.CreateScmConfigResponse{Config: config}, err
}

// DeleteScmConfig deletes a configuration. A job deletes its webhooks at the host, because the host may be down for
// hours. The job holds the credential.
func (s *Configurations) DeleteScmConfig(ctx context.Context, r *scmv1.DeleteScmConfigRequest) (*scmv1.DeleteScmConfigResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.lock(ctx, tx, r.GetConfigId())
		if err != nil {
			return err
		}
		if err := s.Audited(ctx, tx, row, nil); err != nil {
			return err
		}
		if err := s.enqueueUnsubscribe(ctx, row); err != nil {
			return err
		}
		return tx.ScmConfig.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &scmv1.DeleteScmConfigResponse{}, nil
}

// baseURL normalises a host's URL: lower case, no trailing slash, no default port.
func (s *Connections) baseURL(kind scmv1.ScmType, raw string) (string, error) {
	cloud := host.CloudURL(kind)
	if raw == "" {
		if cloud == "" {
			return "", apierr.InvalidArgument("baseUrl", "baseUrl is required for %s: the web URL of your host, such as https://git.example.com", kind)
		}
		return cloud, nil
	}
	if err := s.egress.CheckURL(raw); err != nil {
		return "", apierr.InvalidArgument("baseUrl", "baseUrl %s", err)
	}
	u, err := url.Parse(raw)
	if err != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return "", apierr.InvalidArgument("baseUrl", "baseUrl must be the web URL of a host, without a query and a fragment")
	}
	u.Host = strings.ToLower(u.Host)
	if port := u.Port(); u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		u.Host = strings.TrimSuffix(u.Host, ":"+port)
	}
	u.RawPath, u.Path = "", strings.TrimRight(u.Path, "/")
	if u.String() != cloud && (kind == scmv1.ScmType_SCM_TYPE_GITHUB || kind == scmv1.ScmType_SCM_TYPE_GITLAB) {
		return "", apierr.InvalidArgument("baseUrl", "baseUrl of %s must be %s or left out, got %q: for a host of your own use %s", kind, cloud, u.Redacted(), ownKind[kind])
	}
	return u.String(), nil
}

// ownKind maps a cloud type to its self-hosted type.
var ownKind = map[scmv1.ScmType]scmv1.ScmType{
	scmv1.ScmType_SCM_TYPE_GITHUB: scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE,
	scmv1.ScmType_SCM_TYPE_GITLAB: scmv1.ScmType_SCM_TYPE_GITLAB_SELFMANAGED,
}

// checkNamespace rejects namespaces that the host type cannot have. The proto validates the format.
func checkNamespace(kind scmv1.ScmType, namespace string) error {
	gitHub := kind == scmv1.ScmType_SCM_TYPE_GITHUB || kind == scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE
	if gitHub && strings.Contains(namespace, "/") {
		return apierr.InvalidArgument("namespace", "namespace must be one organization or user of GitHub, without a slash, got %q", namespace)
	}
	if kind == scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS && strings.Count(namespace, "/") > 1 {
		return apierr.InvalidArgument("namespace", "namespace must be an organization of Azure DevOps, or organization/project, got %q", namespace)
	}
	if kind != scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS && strings.Contains(namespace, " ") {
		return apierr.InvalidArgument("namespace", "namespace must have no spaces: only projects of Azure DevOps have them, got %q", namespace)
	}
	return nil
}

// credentialFrom returns the application and the access token for a new configuration. They come from another
// configuration that it names, unless the request has a token.
func (s *Configurations) credentialFrom(ctx context.Context, tx *ent.Tx, r *scmv1.CreateScmConfigRequest, baseURL string) (app usedApp, token string, err error) {
	token = r.GetAccessToken()
	if r.GetScmConfigId() == 0 {
		return usedApp{}, token, nil
	}
	other, err := named(ctx, tx.Client(), r.GetScmConfigId())
	if err != nil {
		return usedApp{}, "", err
	}
	if other.Type != r.GetType().String() || other.BaseURL != baseURL {
		return usedApp{}, "", apierr.InvalidArgument("scmConfigId", "scmConfigId must be a connection to the same host (%s at %s); connection %d is %s at %s",
			r.GetType(), baseURL, other.ID, other.Type, other.BaseURL)
	}
	if token == "" {
		if token, err = s.seals.Open(connect.ConfigTable, connect.AccessToken, other.DeploymentID, other.ID, other.AccessToken); err != nil {
			return usedApp{}, "", err
		}
	}
	app, err = appOf(ctx, tx, other)
	return app, token, err
}

// checkFree rejects a second configuration of a namespace, case-insensitively as the hosts are. The unique index
// rejects concurrent inserts.
func checkFree(ctx context.Context, tx *ent.Tx, self int64, kind, baseURL, namespace string) error {
	exists, err := tx.ScmConfig.Query().Where(scmconfig.IDNEQ(self), scmconfig.Type(kind), scmconfig.BaseURL(baseURL),
		scmconfig.NamespaceEqualFold(namespace)).Exist(ctx)
	if err == nil && exists {
		err = alreadyConnected(kind, baseURL, namespace)
	}
	return err
}

func taken(err error, kind, baseURL, namespace string) error {
	if ent.IsConstraintError(err) {
		return alreadyConnected(kind, baseURL, namespace)
	}
	return err
}

func alreadyConnected(kind, baseURL, namespace string) error {
	return apierr.AlreadyExists("namespace %q of %s at %s is connected already", namespace, kind, baseURL)
}

// lock finds a configuration and locks it until the end of the transaction.
func (c *Connections) lock(ctx context.Context, tx *ent.Tx, id int64) (*ent.ScmConfig, error) {
	query := tx.ScmConfig.Query().Where(scmconfig.ID(id))
	if c.store.Postgres() {
		query.ForUpdate()
	}
	return orNotFound(id)(query.Only(ctx))
}

func find(ctx context.Context, db *ent.Client, id int64) (*ent.ScmConfig, error) {
	return orNotFound(id)(db.ScmConfig.Query().Where(scmconfig.ID(id)).Only(ctx))
}

// named finds the configuration that a request names: by its id or, if none has it, by its scmId, the host's id of its
// namespace. Deleting a configuration or its webhook takes only the id: a repeated request must not reach another
// configuration.
func named(ctx context.Context, db *ent.Client, id int64) (*ent.ScmConfig, error) {
	row, err := db.ScmConfig.Query().Where(scmconfig.ID(id)).Only(ctx)
	if !ent.IsNotFound(err) {
		return row, err
	}
	rows, err := db.ScmConfig.Query().Where(scmconfig.ScmID(strconv.FormatInt(id, 10))).Order(ent.Asc(scmconfig.FieldID)).Limit(2).All(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 1:
		return rows[0], nil
	case len(rows) > 1: // of different hosts
		return nil, apierr.FailedPrecondition("several SCM configs have the scmId %d: name one by its id, such as %d or %d", id, rows[0].ID, rows[1].ID)
	}
	return nil, apierr.NotFound("SCM config %d not found", id)
}

func orNotFound(id int64) func(*ent.ScmConfig, error) (*ent.ScmConfig, error) {
	return func(row *ent.ScmConfig, err error) (*ent.ScmConfig, error) {
		if ent.IsNotFound(err) {
			return nil, apierr.NotFound("SCM config %d not found", id)
		}
		return row, err
	}
}
