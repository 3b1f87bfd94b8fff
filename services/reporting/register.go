package reporting

import (
	"context"

	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/internal/server"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	return server.Parts{
		Services: func(context.Context) ([]server.Service, error) {
			return []server.Service{
				d.Reports.RequireReplica(server.Group[reportingv1.ReportsServiceServer](reportingv1.RegisterReportsServiceServer, NewReports(d.Reports.Store(), int64(d.Config.ReportCache)),
					reportingv1.RegisterReportsServiceHandlerClient, reportingv1.NewReportsServiceClient)),
				d.Reports.RequireReplica(server.Group[reportingv1.MalwareFirewallReportsServiceServer](reportingv1.RegisterMalwareFirewallReportsServiceServer, NewMalwareFirewall(d.Reports.Store()),
					reportingv1.RegisterMalwareFirewallReportsServiceHandlerClient, reportingv1.NewMalwareFirewallReportsServiceClient)),
			}, nil
		},
	}
}
