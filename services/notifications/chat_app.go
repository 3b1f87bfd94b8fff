package notifications

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/chatinstallation"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/tenant"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/channel"
	"github.com/palisade/palisade/services/notifications/slackapp"
)

const (
	// Keys of the config of CHANNEL_SLACK_APP.
	keyChannel     = "channel_id"
	keyChannelName = "channel_name"
	// shownChannels is the default page size of channels.
	shownChannels = 200
)

// errNoInstallation says why a rule of CHANNEL_SLACK_APP cannot send.
func errNoInstallation(app *slackapp.App) error {
	if !app.Exists() {
		return slackapp.ErrNoApp
	}
	return errors.New("the chat app is not installed in a workspace: install it with chat-app/install")
}

// ChatApps is the service group "chat-app integration".
type ChatApps struct {
	notificationsv1.UnimplementedChatAppServiceServer
	store   *store.Store
	jobs    *jobs.Jobs
	senders *Senders
	app     *slackapp.App
	log     *slog.Logger
	// callback is the page of the console that ends installations.
	callback string
}

// NewChatApps serves the operator's chat app. base is the public URL of the server.
func NewChatApps(senders *Senders, queue *jobs.Jobs, base string, log *slog.Logger) *ChatApps {
	return &ChatApps{
		store: senders.store, jobs: queue, senders: senders, app: senders.slack, log: log, callback: base + "/console/chat-app",
	}
}

// GetChatAppInstallation returns the installation.
func (s *ChatApps) GetChatAppInstallation(ctx context.Context, _ *notificationsv1.GetChatAppInstallationRequest) (*notificationsv1.GetChatAppInstallationResponse, error) {
	row, err := s.installation(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	return s.shown(row), nil
}

func (s *ChatApps) shown(row *ent.ChatInstallation) *notificationsv1.GetChatAppInstallationResponse {
	return &notificationsv1.GetChatAppInstallationResponse{
		DeploymentId: row.DeploymentID, ClientId: row.ClientID, AppId: row.AppID, EnterpriseName: row.EnterpriseName, EnterpriseUrl: row.EnterpriseURL,
		TeamName: row.TeamName, Archived: row.Archived,
		UpdateAvailable: row.ClientID != s.app.ClientID || slices.ContainsFunc(slackapp.Scopes, func(scope string) bool { return !slices.Contains(row.Scopes, scope) }),
	}
}

// installation finds the installation of the deployment in the context.
func (s *ChatApps) installation(ctx context.Context, db *ent.Client) (*ent.ChatInstallation, error) {
	row, err := db.ChatInstallation.Query().Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("%v", errNoInstallation(s.app))
	}
	return row, err
}

// GetChatAppChannelMappings lists the channels of the rules.
func (s *ChatApps) GetChatAppChannelMappings(ctx context.Context, _ *notificationsv1.GetChatAppChannelMappingsRequest) (*notificationsv1.GetChatAppChannelMappingsResponse, error) {
	rows, in, err := s.rules(ctx)
	if err != nil {
		return nil, err
	}
	out := &notificationsv1.GetChatAppChannelMappingsResponse{}
	known := map[string]*notificationsv1.ChatAppChannelMapping{}
	for _, row := range rows {
		id := row.Config[keyChannel]
		if known[id] == nil {
			known[id] = &notificationsv1.ChatAppChannelMapping{Id: fmt.Sprint(row.ID), InstallationId: installationID(in), ChannelId: id}
			out.ChannelMappings = append(out.ChannelMappings, known[id])
		}
		known[id].ChannelName = cmp.Or(known[id].GetChannelName(), row.Config[keyChannelName])
	}
	slices.SortFunc(out.GetChannelMappings(), func(a, b *notificationsv1.ChatAppChannelMapping) int {
		return cmp.Compare(a.GetChannelId(), b.GetChannelId())
	})
	return out, nil
}

// GetChatAppNotificationMappings lists what the rules post.
func (s *ChatApps) GetChatAppNotificationMappings(ctx context.Context, _ *notificationsv1.GetChatAppNotificationMappingsRequest) (*notificationsv1.GetChatAppNotificationMappingsResponse, error) {
	rows, in, err := s.rules(ctx)
	if err != nil {
		return nil, err
	}
	grant, _ := access.GrantFromContext(ctx)
	out := &notificationsv1.GetChatAppNotificationMappingsResponse{}
	for _, row := range rows {
		if !row.IsEnabled {
			continue
		}
		products := sentProducts(row)
		mapping := &notificationsv1.ChatAppNotificationMapping{
			Id: fmt.Sprint(row.ID), InstallationId: installationID(in), DeploymentId: row.DeploymentID, DeploymentSlug: grant.Slug,
			ChannelId: row.Config[keyChannel], ChannelName: row.Config[keyChannelName], Products: products, Policies: row.PolicySlugs,
			SastEnabled: slices.Contains(products, vocabulary.SAST), ScaEnabled: slices.Contains(products, vocabulary.SCA),
		}
		if in != nil {
			mapping.TeamId, mapping.TeamName = in.TeamID, in.TeamName
		}
		out.NotificationMappings = append(out.NotificationMappings, mapping)
	}
	return out, nil
}

// sentProducts are the products whose findings a rule sends.
func sentProducts(rule *ent.NotificationRule) []string {
	switch {
	case !rule.SendFindings:
		return nil
	case sendsPolicies(rule):
		return vocabulary.Products
	}
	return codeTypes
}

// rules reads the rules that post to channels, and the installation; nil if there is none.
func (s *ChatApps) rules(ctx context.Context) ([]*ent.NotificationRule, *ent.ChatInstallation, error) {
	rows, err := s.store.Reader.NotificationRule.Query().Where(notificationrule.Channel(channel.SlackApp)).Order(ent.Asc(notificationrule.FieldID)).
		Limit(maxRules).All(ctx)
	if err != nil {
		return nil, nil, err
	}
	in, err := s.store.Reader.ChatInstallation.Query().Only(ctx)
	if ent.IsNotFound(err) {
		return rows, nil, nil
	}
	return rows, in, err
}

func installationID(in *ent.ChatInstallation) string {
	if in == nil {
		return ""
	}
	return fmt.Sprint(in.ID)
}

// ListChatAppChannels lists channels of the workspace.
func (s *ChatApps) ListChatAppChannels(ctx context.Context, r *notificationsv1.ListChatAppChannelsRequest) (*notificationsv1.ListChatAppChannelsResponse, error) {
	row, err := s.installation(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	token, err := s.senders.chatToken(row)
	if err != nil {
		return nil, apierr.FailedPrecondition("the stored token of the chat app cannot be read: install it again").(*apierr.Error).WithCause(err)
	}
	found, next, err := s.app.Channels(ctx, token, r.GetCursor(), cmp.Or(int(r.GetLimit()), shownChannels))
	if err != nil {
		return nil, s.refused(ctx, row, err)
	}
	out := &notificationsv1.ListChatAppChannelsResponse{Cursor: next}
	for _, c := range found {
		out.Channels = append(out.Channels, &notificationsv1.ChatAppChannel{Id: c.ID, Name: c.Name, Private: c.IsPrivate, Member: c.IsMember})
	}
	return out, nil
}

// refused is the error of a request that Slack did not fulfil. It notes a token that Slack no longer accepts.
func (s *ChatApps) refused(ctx context.Context, row *ent.ChatInstallation, cause error) error {
	if slackapp.Lost(cause) {
		if err := s.senders.archive(ctx, row); err != nil {
			return err
		}
	}
	return slackError(cause)
}

// slackError is the error of a request to Slack, for callers.
func slackError(cause error) error {
	text, said := slackapp.Describe(cause)
	if said {
		return apierr.FailedPrecondition("%s", text)
	}
	return apierr.Unavailable(cause, "Slack: %s", text)
}

// installationsOf reads the installations of the deployments that have rules of CHANNEL_SLACK_APP, in one query.
func installationsOf(ctx context.Context, db *ent.Client, rows []*ent.NotificationRule) (map[int64]*ent.ChatInstallation, error) {
	var deployments []int64
	for _, row := range rows {
		if row.Channel == channel.SlackApp {
			deployments = append(deployments, row.DeploymentID)
		}
	}
	found := map[int64]*ent.ChatInstallation{}
	if len(deployments) == 0 {
		return found, nil
	}
	list, err := db.ChatInstallation.Query().
		Where(func(q *entsql.Selector) { q.Where(store.InIDs(q.C(chatinstallation.FieldDeploymentID), deployments)) }).All(ctx)
	for _, row := range list {
		found[row.DeploymentID] = row
	}
	return found, err
}

// toSlackApp opens the sender of a rule of CHANNEL_SLACK_APP.
func (s *Senders) toSlackApp(rule *ent.NotificationRule, in *ent.ChatInstallation) (channel.Sender, error) {
	switch {
	case in == nil, !s.slack.Exists():
		return nil, errNoInstallation(s.slack)
	case in.Archived:
		return nil, errors.New("the chat app was removed from the workspace, so its token no longer works: install it again")
	}
	token, err := s.chatToken(in)
	if err != nil {
		return nil, broken(err)
	}
	return &installed{Sender: channel.OpenSlackApp(s.slack.API(), token, rule.Config[keyChannel], s.guard), in: in, senders: s}, nil
}

// installed sends through an installation, and notes when Slack no longer accepts its token.
type installed struct {
	channel.Sender
	in      *ent.ChatInstallation
	senders *Senders
}

// Send implements channel.Sender.
func (s *installed) Send(ctx context.Context, m channel.Message) (int, error) {
	status, err := s.Sender.Send(ctx, m)
	if slackapp.Lost(err) {
		if failed := s.senders.archive(tenant.NewContext(ctx, s.in.DeploymentID), s.in); failed != nil {
			return status, failed
		}
	}
	return status, err
}

// archive notes that Slack refuses the token of an installation, unless it was installed again meanwhile.
func (s *Senders) archive(ctx context.Context, in *ent.ChatInstallation) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.ChatInstallation.Update().Where(chatinstallation.ID(in.ID), chatinstallation.UpdatedAt(in.UpdatedAt), chatinstallation.Archived(false)).
			SetArchived(true).Exec(ctx)
	})
}

func (s *Senders) chatToken(in *ent.ChatInstallation) (string, error) {
	plain, err := s.keyring.Unseal(in.Token, chatTokenOf(in.ID))
	return string(plain), err
}

// chatTokenOf is the associated data that binds a sealed token to its row.
func chatTokenOf(id int64) []byte { return fmt.Appendf(nil, "chat_installations.token/%d", id) }
