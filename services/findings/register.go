package findings

import (
	"context"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	return server.Parts{
		Background: []jobs.Work{Background(d.Store)},
		Services: func(context.Context) ([]server.Service, error) {
			return []server.Service{
				server.Group[findingsv1.FindingsServiceServer](findingsv1.RegisterFindingsServiceServer, NewFindings(d.Store, d.Log),
					findingsv1.RegisterFindingsServiceHandlerClient, findingsv1.NewFindingsServiceClient),
				server.Group[findingsv1.SecretsServiceServer](findingsv1.RegisterSecretsServiceServer, NewSecrets(d.Store),
					findingsv1.RegisterSecretsServiceHandlerClient, findingsv1.NewSecretsServiceClient),
				server.Group[findingsv1.TriageServiceServer](findingsv1.RegisterTriageServiceServer, NewTriage(d.Store),
					findingsv1.RegisterTriageServiceHandlerClient, findingsv1.NewTriageServiceClient),
				server.Group[findingsv1.FindingIdentityServiceServer](findingsv1.RegisterFindingIdentityServiceServer, NewFindingIdentity(d.Store),
					findingsv1.RegisterFindingIdentityServiceHandlerClient, findingsv1.NewFindingIdentityServiceClient),
			}, nil
		},
	}
}
