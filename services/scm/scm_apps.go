package scm

import (
	"context"
	"log/slog"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmapp"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/ent/tenant"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

// appRequestLife is how long a request may be completed. It is GitHub's own limit for the code.
const appRequestLife = time.Hour

// States of an application.
const (
	appPending  = "pending"
	appComplete = "complete"
)

// Apps is the service group "SCM apps".
type Apps struct {
	scmv1.UnimplementedScmAppsServiceServer
	*Connections
	log *slog.Logger
}

// NewApps serves applications at source-code hosts.
func NewApps(c *Connections, log *slog.Logger) *Apps { return &Apps{Connections: c, log: log} }

// CreateScmAppRequest starts the registration of an application (contract operation 5).
func (s *Apps) CreateScmAppRequest(ctx context.Context, r *scmv1.CreateScmAppRequestRequest) (*scmv1.CreateScmAppRequestResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	caller, ok := access.FromContext(ctx)
	if !ok {
		return nil, apierr.Unauthenticated("authentication is required")
	}
	requestID := randomText()
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		wanted, err := s.wantedApp(ctx, tx, r)
		if err != nil {
			return err
		}
		now := time.Now()
		create := tx.ScmApp.Create().SetDeploymentID(deploymentID).SetRequestID(requestID).SetState(appPending).
			SetScmType(wanted.kind.String()).SetBaseURL(wanted.baseURL).SetNamespace(wanted.namespace).SetEntityType(wanted.entity).
			SetCreatedBy(caller.UserID).SetCreatedAt(store.Micros(now)).SetExpiresAt(store.Micros(now.Add(appRequestLife)))
		if wanted.configID != 0 {
			create.SetScmConfigID(wanted.configID)
		}
		row, err := create.Save(ctx)
		if err != nil {
			return err
		}
		audit.Change(ctx, connect.AuditApp, row.ID, nil, connect.AppMessage(row))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &scmv1.CreateScmAppRequestResponse{RequestId: requestID}, nil
}

// wantedApp says where an application is to be registered.
type wantedApp struct {
	kind                       scmv1.ScmType
	baseURL, namespace, entity string
	configID                   int64 // 0 for none
}

// wantedApp fills absent fields from the connection that the request names.
func (s *Apps) wantedApp(ctx context.Context, tx *ent.Tx, r *scmv1.CreateScmAppRequestRequest) (w wantedApp, err error) {
	w.namespace = r.GetNamespace()
	switch r.GetGithubEntityType() {
	case scmv1.GithubEntityType_GITHUB_ENTITY_TYPE_USER:
		w.entity = string(host.User)
	case scmv1.GithubEntityType_GITHUB_ENTITY_TYPE_ORG:
		w.entity = string(host.Org)
	}
	raw := r.GetBaseUrl()
	if r.GetDeploymentScmConfigId() != 0 {
		asked, err := named(ctx, tx.Client(), r.GetDeploymentScmConfigId())
		if err != nil {
			return w, err
		}
		config, err := s.lock(ctx, tx, asked.ID)
		if err != nil {
			return w, err
		}
		w.configID = config.ID
		if w.kind = connect.TypeOf(config.Type); !isGitHub(w.kind) {
			return w, apierr.FailedPrecondition("SCM config %d is of type %s: applications can be registered at GitHub and GitHub Enterprise only", config.ID, w.kind)
		}
		if w.baseURL, err = s.sameBaseURL(config, raw); err != nil {
			return w, err
		}
		w.namespace = orElse(w.namespace, config.Namespace)
		w.entity = orElse(w.entity, orElse(config.EntityType, string(host.Org)))
		return w, nil
	}
	if w.namespace == "" {
		return w, apierr.InvalidArgument("namespace", "namespace is required without deploymentScmConfigId: an organization or person at GitHub")
	}
	w.entity = orElse(w.entity, string(host.Org))
	w.kind = scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE
	if raw == "" {
		w.kind = scmv1.ScmType_SCM_TYPE_GITHUB
	}
	w.baseURL, err = s.baseURL(w.kind, raw)
	if w.baseURL == host.CloudURL(scmv1.ScmType_SCM_TYPE_GITHUB) {
		w.kind = scmv1.ScmType_SCM_TYPE_GITHUB
	}
	return w, err
}

// sameBaseURL rejects a host other than the connection's.
func (s *Apps) sameBaseURL(config *ent.ScmConfig, raw string) (string, error) {
	if raw == "" {
		return config.BaseURL, nil
	}
	got, err := s.baseURL(connect.TypeOf(config.Type), raw)
	if err == nil && got != config.BaseURL {
		err = apierr.InvalidArgument("baseUrl", "baseUrl must be the baseUrl of SCM config %d (%s) or left out, got %q", config.ID, config.BaseURL, got)
	}
	return got, err
}

func isGitHub(kind scmv1.ScmType) bool {
	return kind == scmv1.ScmType_SCM_TYPE_GITHUB || kind == scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// GetScmApp returns the application of a request, completed or not.
func (s *Apps) GetScmApp(ctx context.Context, r *scmv1.GetScmAppRequest) (*scmv1.GetScmAppResponse, error) {
	row, err := s.store.Reader.ScmApp.Query().Where(scmapp.RequestID(r.GetRequestId()), notExpired()).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, errNoRequest()
	}
	if err != nil {
		return nil, err
	}
	return &scmv1.GetScmAppResponse{App: connect.AppMessage(row)}, nil
}

// ListScmApps lists the registered applications by id.
func (s *Apps) ListScmApps(ctx context.Context, _ *scmv1.ListScmAppsRequest) (*scmv1.ListScmAppsResponse, error) {
	rows, err := s.store.Reader.ScmApp.Query().Where(scmapp.State(appComplete)).Order(ent.Asc(scmapp.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &scmv1.ListScmAppsResponse{}
	for _, row := range rows {
		response.Apps = append(response.Apps, connect.AppMessage(row))
	}
	return response, nil
}

// GetGitHubAppStatus answers from the state that the applications' webhooks reported.
func (s *Apps) GetGitHubAppStatus(ctx context.Context, r *scmv1.GetGitHubAppStatusRequest) (*scmv1.GetGitHubAppStatusResponse, error) {
	gitHub := []string{scmv1.ScmType_SCM_TYPE_GITHUB.String(), scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE.String()}
	installed, err := s.store.Reader.ScmApp.Query().Where(scmapp.State(appComplete), scmapp.NamespaceEqualFold(r.GetNamespace()),
		scmapp.InstallationIDNEQ(""), scmapp.Suspended(false)).Exist(ctx)
	if err == nil && !installed {
		installed, err = s.store.Reader.ScmConfig.Query().Where(scmconfig.TypeIn(gitHub...), scmconfig.NamespaceEqualFold(r.GetNamespace()),
			scmconfig.ScmAppIDNotNil(), scmconfig.Installed(true), scmconfig.Suspended(false)).Exist(ctx)
	}
	if err != nil {
		return nil, err
	}
	deploymentID, _ := tenant.FromContext(ctx)
	return &scmv1.GetGitHubAppStatusResponse{DeploymentId: deploymentID, Namespace: r.GetNamespace(), Installed: installed}, nil
}

// DeleteScmApp deletes an application or an unfinished request.
func (s *Apps) DeleteScmApp(ctx context.Context, r *scmv1.DeleteScmAppRequest) (*scmv1.DeleteScmAppResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.LockApp(ctx, tx, scmapp.ID(r.GetScmAppId()), notExpired())
		if ent.IsNotFound(err) {
			return apierr.NotFound("SCM app %d not found", r.GetScmAppId())
		}
		if err != nil {
			return err
		}
		if err := s.releaseConfigs(ctx, tx, row); err != nil {
			return err
		}
		audit.Change(ctx, connect.AuditApp, row.ID, connect.AppMessage(row), nil)
		return tx.ScmApp.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	deploymentID, _ := tenant.FromContext(ctx)
	return &scmv1.DeleteScmAppResponse{DeploymentId: deploymentID, ScmAppId: r.GetScmAppId()}, nil
}

// releaseConfigs removes an application from all connections that use it.
func (s *Apps) releaseConfigs(ctx context.Context, tx *ent.Tx, app *ent.ScmApp) error {
	rows, err := tx.ScmConfig.Query().Where(scmconfig.ScmAppID(app.ID)).Order(ent.Asc(scmconfig.FieldID)).All(ctx)
	if err != nil || len(rows) == 0 {
		return err
	}
	before, err := connect.ConfigMessages(ctx, tx.Client(), rows...)
	if err != nil {
		return err
	}
	released := tx.ScmConfig.Update().Where(scmconfig.ScmAppID(app.ID))
	if err := released.ClearScmAppID().SetInstalled(false).SetSuspended(false).SetUpdatedAt(store.Now()).Exec(ctx); err != nil {
		return err
	}
	for _, row := range rows {
		row.ScmAppID, row.Installed, row.Suspended = nil, false, false
	}
	after, err := connect.ConfigMessages(ctx, tx.Client(), rows...)
	if err != nil {
		return err
	}
	for i, row := range rows {
		audit.Change(ctx, connect.AuditConfig, row.ID, before[i], after[i])
	}
	return nil
}
