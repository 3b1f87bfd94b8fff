package policies

import (
	"context"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/server"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	return server.Parts{
		Services: func(context.Context) ([]server.Service, error) {
			return []server.Service{
				server.Group[policiesv1.PoliciesV2ServiceServer](policiesv1.RegisterPoliciesV2ServiceServer, NewPoliciesV2(d.Store),
					policiesv1.RegisterPoliciesV2ServiceHandlerClient, policiesv1.NewPoliciesV2ServiceClient),
			}, nil
		},
	}
}
