package scm

import (
	"bytes"
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
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

// CompleteScmAppRequest completes a registration. The code is valid once: after the host's answer, a canceled request
// no longer prevents storing the result.
func (s *Apps) CompleteScmAppRequest(ctx context.Context, r *scmv1.CompleteScmAppRequestRequest) (*scmv1.CompleteScmAppRequestResponse, error) {
	row, err := s.pendingRequest(ctx, r.GetRequestId())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(tenant.NewContext(ctx, row.DeploymentID), requestTimeout)
	defer cancel()
	made, err := host.RegisterApp(ctx, connect.TypeOf(row.ScmType), row.BaseURL, r.GetCode(), s.egress.Client(connect.Limits))
	if err != nil {
		return nil, hostError(err)
	}
	ctx, cancelHere := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancelHere()
	app := host.OpenApp(connect.TypeOf(row.ScmType), row.BaseURL, made.ID, made.PrivateKey, s.egress.Client(connect.Limits))
	readsCode, err := app.ReadsCode(ctx)
	if err != nil {
		s.log.WarnContext(ctx, "the permissions of a new application are unknown", "app_id", made.ID, "error", err)
	}
	if made.WebhookSecret == "" {
		made.WebhookSecret = randomText()
	}
	done, err := s.storeApp(ctx, row.ID, made, readsCode)
	if err != nil {
		return nil, err
	}
	if err := app.SetWebhook(ctx, s.callback(done.WebhookKey), made.WebhookSecret); err != nil {
		s.log.WarnContext(ctx, "the webhook of a new application was not set up; rotating its secret tries again", "scm_app_id", done.ID, "error", err)
	}
	return &scmv1.CompleteScmAppRequestResponse{App: connect.AppMessage(done)}, nil
}

// pendingRequest finds a request in the deployments that the caller administers.
func (s *Apps) pendingRequest(ctx context.Context, requestID string) (*ent.ScmApp, error) {
	var deployments []int64
	if caller, ok := access.FromContext(ctx); ok {
		for _, grant := range caller.Grants {
			if grant.Role == access.RoleAdmin {
				deployments = append(deployments, grant.DeploymentID)
			}
		}
	}
	row, err := s.store.Reader.ScmApp.Query().Where(scmapp.RequestID(requestID), scmapp.State(appPending), notExpired(),
		store.OneOf(scmapp.FieldDeploymentID, deployments)).Only(tenant.System(ctx))
	if ent.IsNotFound(err) {
		return nil, errNoRequest()
	}
	return row, err
}

func errNoRequest() error {
	return apierr.NotFound("SCM app request not found: a request expires after an hour")
}

// notExpired excludes expired requests. They are invisible even before scm_expiry deletes them.
func notExpired() predicate.ScmApp {
	return scmapp.Or(scmapp.State(appComplete), scmapp.ExpiresAtGT(store.Now()))
}

// storeApp stores the host's answer and assigns the application to the request's connection. The webhook key is the
// request id, which was known when the application was created.
func (s *Apps) storeApp(ctx context.Context, id int64, made host.RegisteredApp, readsCode bool) (after *ent.ScmApp, err error) {
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.LockApp(ctx, tx, scmapp.ID(id), scmapp.State(appPending))
		if ent.IsNotFound(err) {
			return errNoRequest() // completed or deleted concurrently
		}
		if err != nil {
			return err
		}
		update := row.Update().SetState(appComplete).SetAppID(made.ID).SetSlug(made.Slug).SetName(made.Name).SetCodeAccess(readsCode).
			SetClientID(made.ClientID).SetWebhookKey(row.RequestID).SetCompletedAt(store.Now())
		for _, secret := range []struct {
			what, plain string
			set         func([]byte) *ent.ScmAppUpdateOne
		}{
			{connect.ClientSecret, made.ClientSecret, update.SetClientSecret},
			{connect.PrivateKey, made.PrivateKey, update.SetPrivateKey},
			{connect.WebhookSecret, made.WebhookSecret, update.SetWebhookSecret},
		} {
			sealed, err := s.seals.Seal(connect.AppTable, secret.what, row.DeploymentID, row.ID, secret.plain)
			if err != nil {
				return err
			}
			secret.set(sealed)
		}
		if after, err = update.Save(ctx); err != nil {
			return err
		}
		audit.Change(ctx, connect.AuditApp, row.ID, connect.AppMessage(row), connect.AppMessage(after))
		return s.giveToConfig(ctx, tx, after)
	})
	return after, err
}

// giveToConfig makes the request's connection use its application. The connection may have been deleted concurrently.
func (s *Apps) giveToConfig(ctx context.Context, tx *ent.Tx, app *ent.ScmApp) error {
	if app.ScmConfigID == nil {
		return nil
	}
	before, err := tx.ScmConfig.Query().Where(scmconfig.ID(*app.ScmConfigID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	used := usedApp{app}
	after, err := before.Update().SetScmAppID(app.ID).SetInstalled(used.installedIn(before.Namespace)).
		SetSuspended(used.suspendedIn(before.Namespace)).SetUpdatedAt(store.Now()).Save(ctx)
	if err != nil {
		return err
	}
	return s.Audited(ctx, tx, before, after)
}

// RotateScmAppWebhookSecret sets a new secret at the host, then stores it. If storing fails, the host gets the stored
// secret again.
func (s *Apps) RotateScmAppWebhookSecret(ctx context.Context, r *scmv1.RotateScmAppWebhookSecretRequest) (*scmv1.RotateScmAppWebhookSecretResponse, error) {
	row, err := s.store.Reader.ScmApp.Query().Where(scmapp.ID(r.GetScmAppId()), notExpired()).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("SCM app %d not found", r.GetScmAppId())
	}
	if err != nil {
		return nil, err
	}
	if !isGitHub(connect.TypeOf(row.ScmType)) {
		return nil, apierr.FailedPrecondition("SCM app %d has no webhook: its connections have them, rotate their secrets", row.ID)
	}
	if row.State != appComplete {
		return nil, apierr.FailedPrecondition("SCM app %d has no webhook yet: complete its request first", row.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	app, err := s.OpenApp(row)
	if err != nil {
		return nil, err
	}
	fresh := randomText()
	if err := app.SetWebhook(ctx, s.callback(row.WebhookKey), fresh); err != nil {
		return nil, hostError(err)
	}
	if err := s.storeAppSecret(ctx, row, fresh); err != nil {
		s.restoreAppSecret(ctx, app, row.ID)
		return nil, err
	}
	return &scmv1.RotateScmAppWebhookSecretResponse{Success: true}, nil
}

func (s *Apps) storeAppSecret(ctx context.Context, row *ent.ScmApp, fresh string) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now, err := s.LockApp(ctx, tx, scmapp.ID(row.ID))
		if ent.IsNotFound(err) || err == nil && !bytes.Equal(now.WebhookSecret, row.WebhookSecret) {
			return apierr.Conflict("SCM app %d was deleted or its webhook secret rotated by another request at the same time", row.ID)
		}
		if err != nil {
			return err
		}
		sealed, err := s.seals.Seal(connect.AppTable, connect.WebhookSecret, row.DeploymentID, row.ID, fresh)
		if err != nil {
			return err
		}
		after, err := now.Update().SetPreviousWebhookSecret(now.WebhookSecret).SetWebhookSecret(sealed).SetWebhookRotatedAt(store.Now()).Save(ctx)
		if err == nil {
			audit.Change(ctx, connect.AuditApp, row.ID, connect.AppMessage(now), connect.AppMessage(after))
		}
		return err
	})
}

// restoreAppSecret sets the stored secret at the host, best effort.
func (s *Apps) restoreAppSecret(ctx context.Context, app *host.App, id int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connect.CallTimeout)
	defer cancel()
	row, err := s.store.Reader.ScmApp.Query().Where(scmapp.ID(id)).Only(ctx)
	if err != nil {
		return
	}
	secret, err := s.seals.Open(connect.AppTable, connect.WebhookSecret, row.DeploymentID, row.ID, row.WebhookSecret)
	if err == nil && secret != "" {
		err = app.SetWebhook(ctx, s.callback(row.WebhookKey), secret)
	}
	if err != nil {
		s.log.ErrorContext(ctx, "an application's webhook may have a secret that is not stored: rotate it again", "scm_app_id", id, "error", err)
	}
}
