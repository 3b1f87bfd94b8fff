package findings

import (
	"context"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/export"
	"github.com/palisade/palisade/services/findings/feed"
	"github.com/palisade/palisade/services/findings/snapshots"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/tasktoken"
	"github.com/palisade/palisade/services/scans/ingest"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	server.Shared(d, triage.DeciderKey{}, func() *triage.Decider { return &triage.Decider{} }).Decide = decideFor(d.Store)
	return server.Parts{
		Background: []jobs.Work{
			Background(d.Store), ChangesBackground(d.Store, d.Config.UndoRetention),
			export.Background(d.Store, d.Config.BaseURL(), d.Calls, d.Log),
		},
		Services: func(ctx context.Context) ([]server.Service, error) {
			redactionKey, err := d.Keyring.StoredKey(ctx, d.Store, ingest.RedactionKey)
			if err != nil {
				return nil, err
			}
			exports := export.NewExports(d.Store, d.Jobs, tasktoken.New(d.Store, d.Keyring, d.Config.BaseURL()))
			return []server.Service{
				server.Group[findingsv1.FindingsServiceServer](findingsv1.RegisterFindingsServiceServer, NewFindings(d.Store, d.Log),
					findingsv1.RegisterFindingsServiceHandlerClient, findingsv1.NewFindingsServiceClient),
				server.Group[findingsv1.IssuesServiceServer](findingsv1.RegisterIssuesServiceServer, NewIssues(d.Store, d.Jobs, snapshots.Of(d, d.Store), d.Keyring, exports),
					findingsv1.RegisterIssuesServiceHandlerClient, findingsv1.NewIssuesServiceClient),
				server.Group[findingsv1.SecretsServiceServer](findingsv1.RegisterSecretsServiceServer, NewSecrets(d.Store),
					findingsv1.RegisterSecretsServiceHandlerClient, findingsv1.NewSecretsServiceClient),
				server.Group[findingsv1.TriageServiceServer](findingsv1.RegisterTriageServiceServer, NewTriage(d.Store, d.Jobs),
					findingsv1.RegisterTriageServiceHandlerClient, findingsv1.NewTriageServiceClient),
				server.Group[findingsv1.FindingIdentityServiceServer](findingsv1.RegisterFindingIdentityServiceServer, NewFindingIdentity(d.Store, d.Jobs, d.Keyring, redactionKey),
					findingsv1.RegisterFindingIdentityServiceHandlerClient, findingsv1.NewFindingIdentityServiceClient),
				server.Group[findingsv1.RemovedFindingsServiceServer](findingsv1.RegisterRemovedFindingsServiceServer, NewRemovedFindings(d.Store),
					findingsv1.RegisterRemovedFindingsServiceHandlerClient, findingsv1.NewRemovedFindingsServiceClient),
				server.Group[findingsv1.TriageChangesServiceServer](findingsv1.RegisterTriageChangesServiceServer, NewTriageChanges(d.Store, d.Jobs, d.Keyring),
					findingsv1.RegisterTriageChangesServiceHandlerClient, findingsv1.NewTriageChangesServiceClient),
				server.Group[findingsv1.ExceptionRequestsServiceServer](findingsv1.RegisterExceptionRequestsServiceServer, NewExceptionRequests(d.Store, d.Jobs),
					findingsv1.RegisterExceptionRequestsServiceHandlerClient, findingsv1.NewExceptionRequestsServiceClient),
				server.Group[findingsv1.SavedViewsServiceServer](findingsv1.RegisterSavedViewsServiceServer, NewSavedViews(d.Store),
					findingsv1.RegisterSavedViewsServiceHandlerClient, findingsv1.NewSavedViewsServiceClient),
				server.GroupWithoutRoutes[findingsv1.FindingChangesServiceServer](findingsv1.RegisterFindingChangesServiceServer,
					NewFindingChanges(feed.New(d.Store, d.Keyring, d.Config.FeedRetention))),
				server.GroupWithoutRoutes[findingsv1.ExportsServiceServer](findingsv1.RegisterExportsServiceServer, exports),
			}, nil
		},
	}
}
