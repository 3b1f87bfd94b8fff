package notifications

import (
	"context"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/chatinstallation"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/tenant"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/channel"
	"github.com/palisade/palisade/services/notifications/slackapp"
)

const (
	// installLife is how long a link to install the app is valid.
	installLife   = 10 * time.Minute
	stateKey      = "chat_app_state_key"
	stateAudience = "palisade-chat-app"
	// auditChat is the object kind of installations in the audit trail.
	auditChat = "chat_installation"
)

// InstallChatAppApp starts an installation. The state binds it to the caller and the deployment, so that nobody makes
// another person install a workspace of theirs.
func (s *ChatApps) InstallChatAppApp(ctx context.Context, r *notificationsv1.InstallChatAppAppRequest) (*notificationsv1.InstallChatAppAppResponse, error) {
	if !s.app.Exists() {
		return nil, apierr.FailedPrecondition("%v", slackapp.ErrNoApp)
	}
	key, err := s.senders.keyring.StoredKey(ctx, s.store, stateKey)
	if err != nil {
		return nil, err
	}
	state, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Subject: installerOf(ctx), ID: strconv.FormatInt(r.GetDeploymentId(), 10), Audience: jwt.ClaimStrings{stateAudience},
		ExpiresAt: jwt.NewNumericDate(time.Now().Add(installLife)),
	}).SignedString(key)
	if err != nil {
		return nil, err
	}
	return &notificationsv1.InstallChatAppAppResponse{RedirectUrl: s.app.AuthorizeURL(state, s.callback)}, nil
}

// installerOf is the caller, as it stands in states.
func installerOf(ctx context.Context) string {
	caller, _ := access.FromContext(ctx)
	return strconv.FormatInt(caller.UserID, 10)
}

// isState reports whether InstallChatAppApp made the state for this caller and deployment.
func (s *ChatApps) isState(ctx context.Context, state string, deploymentID int64) (bool, error) {
	key, err := s.senders.keyring.StoredKey(ctx, s.store, stateKey)
	if err != nil {
		return false, err
	}
	var claims jwt.RegisteredClaims
	_, err = jwt.ParseWithClaims(state, &claims, func(*jwt.Token) (any, error) { return key, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithAudience(stateAudience), jwt.WithExpirationRequired())
	return err == nil && claims.Subject == installerOf(ctx) && claims.ID == strconv.FormatInt(deploymentID, 10), nil
}

// HandleChatAppCallback ends an installation. The code is valid once: after Slack's answer, a canceled request no
// longer prevents storing the result.
func (s *ChatApps) HandleChatAppCallback(ctx context.Context, r *notificationsv1.HandleChatAppCallbackRequest) (*notificationsv1.HandleChatAppCallbackResponse, error) {
	if !s.app.Exists() {
		return nil, apierr.FailedPrecondition("%v", slackapp.ErrNoApp)
	}
	genuine, err := s.isState(ctx, r.GetState(), r.GetDeploymentId())
	if err != nil {
		return nil, err
	}
	if !genuine {
		return nil, apierr.InvalidArgument("state", "state is not of an installation that you began in this deployment within %s: start it again", installLife)
	}
	made, err := s.app.Exchange(ctx, r.GetCode(), s.callback)
	if err != nil {
		return nil, slackError(err)
	}
	row, before, err := s.install(context.WithoutCancel(ctx), made)
	if err != nil {
		return nil, err
	}
	if before != nil && before.TeamID != row.TeamID {
		s.revoke(ctx, before)
	}
	return &notificationsv1.HandleChatAppCallbackResponse{
		DeploymentId: row.DeploymentID, AppId: row.AppID, EnterpriseId: row.EnterpriseID, EnterpriseName: row.EnterpriseName, EnterpriseUrl: row.EnterpriseURL,
		TeamId: row.TeamID, TeamName: row.TeamName,
	}, nil
}

// install stores an installation in place of an earlier one. What waits for it is sent at once.
func (s *ChatApps) install(ctx context.Context, made *slackapp.Installation) (after, before *ent.ChatInstallation, err error) {
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		before, err = tx.ChatInstallation.Query().Only(ctx)
		now := store.Now()
		switch {
		case ent.IsNotFound(err):
			before = nil
			after, err = tx.ChatInstallation.Create().SetClientID(s.app.ClientID).SetAppID(made.AppID).SetTeamID(made.TeamID).SetTeamName(made.TeamName).
				SetScopes(made.Scopes).SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		case err == nil:
			now = max(now, before.UpdatedAt+1)
			after = before
		}
		if err != nil {
			return err
		}
		sealed, err := s.senders.keyring.Seal([]byte(made.Token), chatTokenOf(after.ID))
		if err != nil {
			return err
		}
		after, err = after.Update().SetClientID(s.app.ClientID).SetAppID(made.AppID).SetTeamID(made.TeamID).SetTeamName(made.TeamName).
			SetEnterpriseID(made.EnterpriseID).SetEnterpriseName(made.EnterpriseName).SetEnterpriseURL(made.URL).SetScopes(made.Scopes).
			SetToken(sealed).SetArchived(false).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		var old *notificationsv1.GetChatAppInstallationResponse
		if before != nil {
			old = s.shown(before)
		}
		audit.Change(ctx, auditChat, after.ID, old, s.shown(after))
		rules, err := tx.NotificationRule.Query().Where(notificationrule.Channel(channel.SlackApp), notificationrule.IsEnabled(true)).IDs(ctx)
		if err != nil {
			return err
		}
		return resume(ctx, s.store, s.jobs, tx, time.Now(), rules...)
	})
	return after, before, err
}

// DeleteChatAppInstallation removes the installation.
func (s *ChatApps) DeleteChatAppInstallation(ctx context.Context, _ *notificationsv1.DeleteChatAppInstallationRequest) (*notificationsv1.DeleteChatAppInstallationResponse, error) {
	var row *ent.ChatInstallation
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		if row, err = s.installation(ctx, tx.Client()); err != nil {
			return err
		}
		audit.Change(ctx, auditChat, row.ID, s.shown(row), nil)
		return tx.ChatInstallation.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	s.revoke(ctx, row)
	return &notificationsv1.DeleteChatAppInstallationResponse{DeploymentId: row.DeploymentID, ClientId: row.ClientID, AppId: row.AppID, TeamName: row.TeamName}, nil
}

// revoke gives the token of a former installation back, unless another deployment uses the app in the same workspace:
// they share the token. A failure is logged only, because the token is not stored any more.
func (s *ChatApps) revoke(ctx context.Context, former *ent.ChatInstallation) {
	shared, err := s.store.Reader.ChatInstallation.Query().Where(chatinstallation.TeamID(former.TeamID), chatinstallation.AppID(former.AppID)).
		Exist(tenant.System(ctx))
	if err == nil && !shared && !former.Archived {
		var token string
		if token, err = s.senders.chatToken(former); err == nil {
			err = s.app.Revoke(ctx, token)
		}
	}
	if err != nil {
		s.log.WarnContext(ctx, "Slack was not told that an installation of the chat app ended: remove the app in the workspace",
			"team_id", former.TeamID, "error", err)
	}
}
