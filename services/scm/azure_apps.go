package scm

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

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

// azureAppLife is how long an application of Azure DevOps may be completed: other people may have to upload the
// certificate.
const azureAppLife = 30 * 24 * time.Hour

const azureDevOps = scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS

// CreateAdoScmApp makes the key of a service principal. The private key never leaves the server.
func (s *Apps) CreateAdoScmApp(ctx context.Context, r *scmv1.CreateAdoScmAppRequest) (*scmv1.CreateAdoScmAppResponse, error) {
	caller, ok := access.FromContext(ctx)
	if !ok {
		return nil, apierr.Unauthenticated("authentication is required")
	}
	baseURL, err := s.baseURL(azureDevOps, r.GetBaseUrl())
	if err != nil {
		return nil, err
	}
	namespace := r.GetOrganizationName() + "/" + r.GetProjectName()
	key, certificate, err := host.NewPrincipalKey(namespace)
	if err != nil {
		return nil, err
	}
	response := &scmv1.CreateAdoScmAppResponse{PublicCertificatePem: certificate}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		deploymentID, _ := tenant.FromContext(ctx)
		now, client := time.Now(), strings.ToLower(r.GetClientId())
		row, err := tx.ScmApp.Create().SetDeploymentID(deploymentID).SetRequestID(randomText()).SetState(appPending).SetScmType(azureDevOps.String()).
			SetBaseURL(baseURL).SetNamespace(namespace).SetEntityType(string(host.Org)).SetCreatedBy(caller.UserID).
			SetTenantID(strings.ToLower(r.GetTenantId())).SetClientID(client).SetAppID(client).
			SetCreatedAt(store.Micros(now)).SetExpiresAt(store.Micros(now.Add(azureAppLife))).Save(ctx)
		if err != nil {
			return err
		}
		sealed, err := s.seals.Seal(connect.AppTable, connect.PrivateKey, deploymentID, row.ID, key)
		if err != nil {
			return err
		}
		if row, err = row.Update().SetPrivateKey(sealed).Save(ctx); err != nil {
			return err
		}
		response.ScmAppId = row.ID
		audit.Change(ctx, connect.AuditApp, row.ID, nil, connect.AppMessage(row))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// CompleteAdoScmAppInstall signs in as the application, and connects its project.
func (s *Apps) CompleteAdoScmAppInstall(ctx context.Context, r *scmv1.CompleteAdoScmAppInstallRequest) (*scmv1.CompleteAdoScmAppInstallResponse, error) {
	asked, err := s.azureApp(ctx, r.GetScmAppId())
	if err != nil {
		return nil, err
	}
	found, err := s.reach(ctx, asked, asked.Namespace)
	if err != nil {
		return nil, err
	}
	response := &scmv1.CompleteAdoScmAppInstallResponse{}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		before, err := s.lockAzureApp(ctx, tx, asked.ID)
		if err != nil {
			return err
		}
		update := before.Update().SetState(appComplete).SetCodeAccess(found.Scopes.GetReadContents())
		if before.CompletedAt == nil {
			update.SetCompletedAt(store.Now())
		}
		after, err := update.Save(ctx)
		if err != nil {
			return err
		}
		audit.Change(ctx, connect.AuditApp, after.ID, connect.AppMessage(before), connect.AppMessage(after))
		response.App = connect.AppMessage(after)
		return s.connectProject(ctx, tx, after, found)
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// AddAdoScmProject connects another project with a completed application.
func (s *Apps) AddAdoScmProject(ctx context.Context, r *scmv1.AddAdoScmProjectRequest) (*scmv1.AddAdoScmProjectResponse, error) {
	asked, err := s.azureApp(ctx, r.GetScmAppId())
	if err != nil {
		return nil, err
	}
	if asked.State != appComplete {
		return nil, apierr.FailedPrecondition("SCM app %d is not complete: upload its certificate and complete it first", asked.ID)
	}
	found, err := s.reach(ctx, asked, r.GetOrganizationName()+"/"+r.GetProjectName())
	if err != nil {
		return nil, err
	}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		app, err := s.lockAzureApp(ctx, tx, asked.ID)
		if err != nil {
			return err
		}
		return s.connectProject(ctx, tx, app, found)
	})
	if err != nil {
		return nil, err
	}
	return &scmv1.AddAdoScmProjectResponse{}, nil
}

// azureApp finds an application for Azure DevOps, completed or not.
func (s *Apps) azureApp(ctx context.Context, id int64) (*ent.ScmApp, error) {
	row, err := s.store.Reader.ScmApp.Query().Where(scmapp.ID(id), scmapp.ScmType(azureDevOps.String()), notExpired()).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, errNoAzureApp(id)
	}
	return row, err
}

func (s *Apps) lockAzureApp(ctx context.Context, tx *ent.Tx, id int64) (*ent.ScmApp, error) {
	row, err := s.LockApp(ctx, tx, scmapp.ID(id), notExpired())
	if ent.IsNotFound(err) { // deleted concurrently
		return nil, errNoAzureApp(id)
	}
	return row, err
}

func errNoAzureApp(id int64) error {
	return apierr.NotFound("SCM app %d for Azure DevOps not found: one that is not completed within 30 days is deleted", id)
}

// reach reads a project as an application.
func (s *Apps) reach(ctx context.Context, app *ent.ScmApp, namespace string) (host.Account, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	opened, err := s.OpenPrincipal(ctx, app)
	if connect.ErrorText(err) != "" {
		return host.Account{}, hostError(err)
	}
	if err != nil {
		return host.Account{}, err
	}
	found, err := opened.Check(ctx, namespace)
	switch {
	case err == nil && found.Scopes.GetReadContents():
		return found, nil
	case err == nil, host.Is(err, host.Unauthorized), host.Is(err, host.Forbidden), host.Is(err, host.NotFound):
		return host.Account{}, apierr.FailedPrecondition(
			"the application can sign in, but Azure DevOps does not show it the repositories of %q: add it to the organization with the access level Basic, and to a group of the project", namespace)
	}
	return host.Account{}, hostError(err)
}

// connectProject makes the connection of a project use an application. It creates the connection, if there is none.
func (s *Apps) connectProject(ctx context.Context, tx *ent.Tx, app *ent.ScmApp, found host.Account) error {
	scopes, err := proto.Marshal(found.Scopes)
	if err != nil {
		return err
	}
	query := tx.ScmConfig.Query().Where(scmconfig.Type(app.ScmType), scmconfig.BaseURL(app.BaseURL), scmconfig.NamespaceEqualFold(found.Path))
	if s.store.Postgres() {
		query.ForUpdate()
	}
	before, err := query.Only(ctx)
	now := store.Now()
	switch {
	case ent.IsNotFound(err):
		made, err := tx.ScmConfig.Create().SetDeploymentID(app.DeploymentID).SetType(app.ScmType).SetBaseURL(app.BaseURL).SetNamespace(found.Path).
			SetScmID(found.ID).SetEntityType(string(found.Entity)).SetScmAppID(app.ID).SetInstalled(true).SetTokenScopes(scopes).
			SetCheckedAt(now).SetCheckOk(true).SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return taken(err, app.ScmType, app.BaseURL, found.Path)
		}
		return s.Audited(ctx, tx, nil, made)
	case err != nil:
		return err
	case before.ScmAppID != nil && *before.ScmAppID == app.ID:
		return nil
	case before.ScmAppID != nil:
		return apierr.AlreadyExists("namespace %q of %s at %s is connected with SCM app %d", before.Namespace, app.ScmType, app.BaseURL, *before.ScmAppID)
	}
	after, err := before.Update().SetScmAppID(app.ID).SetInstalled(true).SetUpdatedAt(now).Save(ctx)
	if err != nil {
		return err
	}
	return s.Audited(ctx, tx, before, after)
}
