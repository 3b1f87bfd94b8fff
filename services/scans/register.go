package scans

import (
	"context"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	uploads := UploadOptions{
		Spool: d.Spool, MaxBytes: int64(d.Config.MaxUpload), Calls: d.Calls,
		Ingested: func(product, outcome string, n int) {
			d.Metrics.FindingsIngested.WithLabelValues(product, outcome).Add(float64(n))
		},
	}
	return server.Parts{
		Background: []jobs.Work{Background(d.Store, d.Log), StatisticsBackground(d.Store), ScannerBackground(d.Store, d.Log, uploads)},
		Services: func(ctx context.Context) ([]server.Service, error) {
			var err error
			if uploads.RedactionKey, err = d.Keyring.StoredKey(ctx, d.Store, "redaction_key"); err != nil {
				return nil, err
			}
			scanners, err := NewScannerProtocol(d.Store, d.Jobs, uploads, d.Config.BaseURL())
			if err != nil {
				return nil, err
			}
			return []server.Service{
				server.Group[scansv1.ScannerProtocolServiceServer](scansv1.RegisterScannerProtocolServiceServer, scanners,
					scansv1.RegisterScannerProtocolServiceHandlerClient, scansv1.NewScannerProtocolServiceClient),
				server.Group[scansv1.ScansServiceServer](scansv1.RegisterScansServiceServer, NewScans(d.Store),
					scansv1.RegisterScansServiceHandlerClient, scansv1.NewScansServiceClient),
				server.GroupWithoutRoutes[scansv1.ReportUploadsServiceServer](scansv1.RegisterReportUploadsServiceServer, NewReportUploads(d.Store, d.Jobs, uploads)),
			}, nil
		},
	}
}
