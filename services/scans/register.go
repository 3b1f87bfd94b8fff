package scans

import (
	"context"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/refs"
	"github.com/palisade/palisade/services/scans/watch"
	"github.com/palisade/palisade/services/scm/connect"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	uploads := UploadOptions{
		Spool: d.Spool, MaxBytes: int64(d.Config.MaxUpload), Calls: d.Calls, CompleteWait: d.Config.CompleteWait,
		PublicURL: d.Config.BaseURL(),
		Ingested: func(product, outcome string, n int) {
			d.Metrics.FindingsIngested.WithLabelValues(product, outcome).Add(float64(n))
		},
	}
	uploads.Watch = watch.New(d.Store, d.Config.StaleRefAge)
	hosts := connect.New(d.Store, d.Keyring, d.Egress, d.Config.EntraURL)
	ages := refs.Ages{Detached: d.Config.DetachedRefAge, Stale: d.Config.StaleRefAge}
	own := ManagedOptions{
		Store: d.Store, Hosts: hosts, Egress: d.Egress, Keyring: d.Keyring, Log: d.Log, Dir: d.Config.Data,
		Limit: d.Config.ManagedScanTimeout, Every: d.Config.ManagedScanEvery, Uploads: uploads,
	}
	return server.Parts{
		Background: []jobs.Work{
			Background(d.Store, d.Log), StatisticsBackground(d.Store), ScannerBackground(d.Store, d.Log, uploads),
			watch.Background(uploads.Watch, d.Log), refs.Background(refs.NewTidier(d.Store, hosts, ages, d.Log)),
			FeedbackBackground(d.Store, hosts, d.Config.BaseURL(), d.Log),
			ManagedBackground(own), AdvisoriesBackground(own),
		},
		Services: func(ctx context.Context) ([]server.Service, error) {
			var err error
			if uploads.RedactionKey, err = d.Keyring.StoredKey(ctx, d.Store, ingest.RedactionKey); err != nil {
				return nil, err
			}
			scanners, err := NewScannerProtocol(d.Store, d.Jobs, uploads, d.Config.BaseURL())
			if err != nil {
				return nil, err
			}
			return []server.Service{
				server.Group[scansv1.ScannerProtocolServiceServer](scansv1.RegisterScannerProtocolServiceServer, scanners,
					scansv1.RegisterScannerProtocolServiceHandlerClient, scansv1.NewScannerProtocolServiceClient),
				server.Group[scansv1.ScansServiceServer](scansv1.RegisterScansServiceServer, NewScans(d.Store, d.Jobs),
					scansv1.RegisterScansServiceHandlerClient, scansv1.NewScansServiceClient),
				server.Group[scansv1.ScansV2ServiceServer](scansv1.RegisterScansV2ServiceServer, NewScansV2(d.Store, d.Jobs),
					scansv1.RegisterScansV2ServiceHandlerClient, scansv1.NewScansV2ServiceClient),
				server.Group[scansv1.ScanDetailsServiceServer](scansv1.RegisterScanDetailsServiceServer, NewScanDetails(d.Store),
					scansv1.RegisterScanDetailsServiceHandlerClient, scansv1.NewScanDetailsServiceClient),
				server.Group[scansv1.PullRequestsServiceServer](scansv1.RegisterPullRequestsServiceServer, NewPullRequests(d.Store),
					scansv1.RegisterPullRequestsServiceHandlerClient, scansv1.NewPullRequestsServiceClient),
				server.Group[scansv1.FreshnessServiceServer](scansv1.RegisterFreshnessServiceServer, NewFreshness(d.Store),
					scansv1.RegisterFreshnessServiceHandlerClient, scansv1.NewFreshnessServiceClient),
				server.Group[scansv1.HeldClosesServiceServer](scansv1.RegisterHeldClosesServiceServer, NewHeldCloses(d.Store),
					scansv1.RegisterHeldClosesServiceHandlerClient, scansv1.NewHeldClosesServiceClient),
				server.Group[scansv1.ReportFormatsServiceServer](scansv1.RegisterReportFormatsServiceServer, NewReportFormats(d.Store),
					scansv1.RegisterReportFormatsServiceHandlerClient, scansv1.NewReportFormatsServiceClient),
				server.Group[scansv1.ManagedScansServiceServer](scansv1.RegisterManagedScansServiceServer, NewManagedScans(d.Store, d.Jobs),
					scansv1.RegisterManagedScansServiceHandlerClient, scansv1.NewManagedScansServiceClient),
				server.Group[scansv1.ManagedScanSettingsServiceServer](scansv1.RegisterManagedScanSettingsServiceServer, NewManagedScanSettings(d.Store),
					scansv1.RegisterManagedScanSettingsServiceHandlerClient, scansv1.NewManagedScanSettingsServiceClient),
				server.Group[scansv1.ProjectManagedScanSettingsServiceServer](scansv1.RegisterProjectManagedScanSettingsServiceServer, NewProjectManagedScanSettings(d.Store),
					scansv1.RegisterProjectManagedScanSettingsServiceHandlerClient, scansv1.NewProjectManagedScanSettingsServiceClient),
				server.GroupWithoutRoutes[scansv1.ReportUploadsServiceServer](scansv1.RegisterReportUploadsServiceServer, NewReportUploads(d.Store, d.Jobs, uploads)),
			}, nil
		},
	}
}
