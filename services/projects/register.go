package projects

import (
	"context"
	"net/http"

	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/server"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	return server.Parts{
		Sites: map[string]http.Handler{badgePath: newBadgeImages(d.Store)},
		Services: func(context.Context) ([]server.Service, error) {
			projects, repositories := NewProjects(d.Store, d.Jobs), NewRepositories(d.Store)
			return []server.Service{
				server.Group[projectsv1.ProjectsServiceServer](projectsv1.RegisterProjectsServiceServer, projects,
					projectsv1.RegisterProjectsServiceHandlerClient, projectsv1.NewProjectsServiceClient),
				server.Group[projectsv1.RepositoriesServiceServer](projectsv1.RegisterRepositoriesServiceServer, repositories,
					projectsv1.RegisterRepositoriesServiceHandlerClient, projectsv1.NewRepositoriesServiceClient),
				server.Group[projectsv1.ProjectsV2ServiceServer](projectsv1.RegisterProjectsV2ServiceServer, NewProjectsV2(projects),
					projectsv1.RegisterProjectsV2ServiceHandlerClient, projectsv1.NewProjectsV2ServiceClient),
				server.Group[projectsv1.ProjectBadgesServiceServer](projectsv1.RegisterProjectBadgesServiceServer, NewBadges(projects, d.Config.BaseURL()),
					projectsv1.RegisterProjectBadgesServiceHandlerClient, projectsv1.NewProjectBadgesServiceClient),
				server.Group[projectsv1.RepositoryChangesServiceServer](projectsv1.RegisterRepositoryChangesServiceServer, NewChanges(d, projects, repositories),
					projectsv1.RegisterRepositoryChangesServiceHandlerClient, projectsv1.NewRepositoryChangesServiceClient),
			}, nil
		},
	}
}
