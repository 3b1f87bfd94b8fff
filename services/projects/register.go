package projects

import (
	"context"

	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/server"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	return server.Parts{
		Services: func(context.Context) ([]server.Service, error) {
			return []server.Service{
				server.Group[projectsv1.ProjectsServiceServer](projectsv1.RegisterProjectsServiceServer, NewProjects(d.Store),
					projectsv1.RegisterProjectsServiceHandlerClient, projectsv1.NewProjectsServiceClient),
			}, nil
		},
	}
}
