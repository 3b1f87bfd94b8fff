package deployments

import (
	"context"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/server"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	return server.Parts{
		Services: func(context.Context) ([]server.Service, error) {
			return []server.Service{
				server.Group[deploymentsv1.DeploymentsServiceServer](deploymentsv1.RegisterDeploymentsServiceServer, NewDeployments(d.Config.BaseURL()),
					deploymentsv1.RegisterDeploymentsServiceHandlerClient, deploymentsv1.NewDeploymentsServiceClient),
				server.Group[deploymentsv1.DeploymentServiceServer](deploymentsv1.RegisterDeploymentServiceServer, NewDeployment(d.Store, d.Config.PoliciesMigrated),
					deploymentsv1.RegisterDeploymentServiceHandlerClient, deploymentsv1.NewDeploymentServiceClient),
				server.Group[deploymentsv1.DeploymentProductsServiceServer](deploymentsv1.RegisterDeploymentProductsServiceServer, NewDeploymentProducts(d.Store),
					deploymentsv1.RegisterDeploymentProductsServiceHandlerClient, deploymentsv1.NewDeploymentProductsServiceClient),
				server.Group[deploymentsv1.DeploymentTagServiceServer](deploymentsv1.RegisterDeploymentTagServiceServer, NewDeploymentTags(d.Store),
					deploymentsv1.RegisterDeploymentTagServiceHandlerClient, deploymentsv1.NewDeploymentTagServiceClient),
				server.Group[deploymentsv1.DeploymentSsoProvidersServiceServer](deploymentsv1.RegisterDeploymentSsoProvidersServiceServer, NewSSOProviders(d.Store, d.Config.OIDCIssuer, d.Config.OIDCAudience),
					deploymentsv1.RegisterDeploymentSsoProvidersServiceHandlerClient, deploymentsv1.NewDeploymentSsoProvidersServiceClient),
				server.Group[deploymentsv1.ChecklistServiceServer](deploymentsv1.RegisterChecklistServiceServer, NewOnboardingChecklist(d.Store),
					deploymentsv1.RegisterChecklistServiceHandlerClient, deploymentsv1.NewChecklistServiceClient),
				server.Group[deploymentsv1.FeatureRolloutsServiceServer](deploymentsv1.RegisterFeatureRolloutsServiceServer, FeatureRollouts{},
					deploymentsv1.RegisterFeatureRolloutsServiceHandlerClient, deploymentsv1.NewFeatureRolloutsServiceClient),
				server.Group[deploymentsv1.VersionsServiceServer](deploymentsv1.RegisterVersionsServiceServer, NewVersions(d.Store),
					deploymentsv1.RegisterVersionsServiceHandlerClient, deploymentsv1.NewVersionsServiceClient),
			}, nil
		},
	}
}
