package reporting

import (
	"context"

	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/findings/snapshots"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/notifications/outbox"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	mails := NewMails(d.Store, NewOverview(NewReports(d.Store, snapshots.Of(d, d.Store))), d.Config.BaseURL())
	server.Shared(d, outbox.ReporterKey{}, func() *outbox.Reporter { return &outbox.Reporter{} }).Write = mails.Now
	return server.Parts{
		Background: []jobs.Work{mails.Background()},
		Services: func(context.Context) ([]server.Service, error) {
			reports := NewReports(d.Reports.Store(), snapshots.Of(d, d.Reports.Store()))
			return []server.Service{
				d.Reports.RequireReplica(server.Group[reportingv1.ReportsServiceServer](reportingv1.RegisterReportsServiceServer, reports,
					reportingv1.RegisterReportsServiceHandlerClient, reportingv1.NewReportsServiceClient)),
				d.Reports.RequireReplica(server.Group[reportingv1.OverviewReportsServiceServer](reportingv1.RegisterOverviewReportsServiceServer, NewOverview(reports),
					reportingv1.RegisterOverviewReportsServiceHandlerClient, reportingv1.NewOverviewReportsServiceClient)),
				d.Reports.RequireReplica(server.Group[reportingv1.MalwareFirewallReportsServiceServer](reportingv1.RegisterMalwareFirewallReportsServiceServer, NewMalwareFirewall(d.Reports.Store()),
					reportingv1.RegisterMalwareFirewallReportsServiceHandlerClient, reportingv1.NewMalwareFirewallReportsServiceClient)),
			}, nil
		},
	}
}
