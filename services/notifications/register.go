package notifications

import (
	"context"

	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/mailserver"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/notifications/automations"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/notifications/slackapp"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	mail, err := mailserver.Parse(d.Config.SMTP, d.Config.SMTPFrom)
	if err != nil {
		panic("mail server: " + err.Error()) // Config.Validate has accepted it
	}
	reports := server.Shared(d, outbox.ReporterKey{}, func() *outbox.Reporter { return &outbox.Reporter{} })
	starter := server.Shared(d, outbox.StarterKey{}, func() *outbox.Starter { return &outbox.Starter{} })
	decider := server.Shared(d, triage.DeciderKey{}, func() *triage.Decider { return &triage.Decider{} })
	app := slackapp.New(d.Config.SlackClientID, d.Config.SlackClientSecret, d.Config.SlackSigningSecret, d.Config.SlackURL, d.Egress)
	senders := NewSenders(d.Store, d.Keyring, d.Egress, mail, app, d.Log)
	return server.Parts{
		Background: []jobs.Work{Background(senders, d.Config.BaseURL(), d.Log), automations.Background(d.Store, starter, d.Log), ChatBackground(senders, decider, d.Log)},
		Services: func(context.Context) ([]server.Service, error) {
			return []server.Service{
				server.Group[notificationsv1.ChatAppServiceServer](notificationsv1.RegisterChatAppServiceServer, NewChatApps(senders, d.Jobs, d.Config.BaseURL(), d.Log),
					notificationsv1.RegisterChatAppServiceHandlerClient, notificationsv1.NewChatAppServiceClient),
				server.Group[notificationsv1.NotificationRulesServiceServer](notificationsv1.RegisterNotificationRulesServiceServer, NewNotificationRules(senders, d.Jobs, reports),
					notificationsv1.RegisterNotificationRulesServiceHandlerClient, notificationsv1.NewNotificationRulesServiceClient),
				server.Group[notificationsv1.NotificationWebhooksServiceServer](notificationsv1.RegisterNotificationWebhooksServiceServer, NewNotificationWebhooks(senders),
					notificationsv1.RegisterNotificationWebhooksServiceHandlerClient, notificationsv1.NewNotificationWebhooksServiceClient),
				server.Group[notificationsv1.NotificationsServiceServer](notificationsv1.RegisterNotificationsServiceServer, NewNotifications(d.Store),
					notificationsv1.RegisterNotificationsServiceHandlerClient, notificationsv1.NewNotificationsServiceClient),
				server.Group[notificationsv1.AutomationsServiceServer](notificationsv1.RegisterAutomationsServiceServer, automations.New(d.Store, starter),
					notificationsv1.RegisterAutomationsServiceHandlerClient, notificationsv1.NewAutomationsServiceClient),
				server.Group[notificationsv1.DeliveriesServiceServer](notificationsv1.RegisterDeliveriesServiceServer, NewDeliveries(d.Store, d.Jobs),
					notificationsv1.RegisterDeliveriesServiceHandlerClient, notificationsv1.NewDeliveriesServiceClient),
			}, nil
		},
	}
}
