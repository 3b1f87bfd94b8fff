package platform

import (
	"context"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/server"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	return server.Parts{
		Services: func(context.Context) ([]server.Service, error) {
			return []server.Service{
				server.Group[platformv1.MiscellaneousServiceServer](platformv1.RegisterMiscellaneousServiceServer, Miscellaneous{},
					platformv1.RegisterMiscellaneousServiceHandlerClient, platformv1.NewMiscellaneousServiceClient),
				server.Group[platformv1.ScannerSupportServiceServer](platformv1.RegisterScannerSupportServiceServer, ScannerSupport{},
					platformv1.RegisterScannerSupportServiceHandlerClient, platformv1.NewScannerSupportServiceClient),
				server.Group[platformv1.AuditServiceServer](platformv1.RegisterAuditServiceServer, NewAudit(d.Store, d.Trail, d.Log),
					platformv1.RegisterAuditServiceHandlerClient, platformv1.NewAuditServiceClient),
			}, nil
		},
	}
}
