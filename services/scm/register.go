package scm

import (
	"context"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	c := NewConnections(d.Store, d.Keyring, d.Egress, d.Config.EntraURL, d.Config.BaseURL())
	return server.Parts{
		Background: []jobs.Work{c.Background(d.Log), IncomingBackground(c, d.Log)},
		Services: func(context.Context) ([]server.Service, error) {
			return []server.Service{
				server.Group[scmv1.ScmServiceServer](scmv1.RegisterScmServiceServer, NewConfigurations(c, d.Jobs),
					scmv1.RegisterScmServiceHandlerClient, scmv1.NewScmServiceClient),
				server.Group[scmv1.ScmSubscriptionsServiceServer](scmv1.RegisterScmSubscriptionsServiceServer, NewWebhooks(c),
					scmv1.RegisterScmSubscriptionsServiceHandlerClient, scmv1.NewScmSubscriptionsServiceClient),
				server.Group[scmv1.ScmAppsServiceServer](scmv1.RegisterScmAppsServiceServer, NewApps(c, d.Log),
					scmv1.RegisterScmAppsServiceHandlerClient, scmv1.NewScmAppsServiceClient),
				server.Group[scmv1.ReviewCommentProductContentServiceServer](scmv1.RegisterReviewCommentProductContentServiceServer, NewReviewComments(d.Store),
					scmv1.RegisterReviewCommentProductContentServiceHandlerClient, scmv1.NewReviewCommentProductContentServiceClient),
				server.GroupWithoutRoutes[scmv1.IncomingWebhooksServiceServer](scmv1.RegisterIncomingWebhooksServiceServer, NewIncomingWebhooks(c, d.Jobs, d.Log)),
			}, nil
		},
	}
}
