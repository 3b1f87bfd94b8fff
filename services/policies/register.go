package policies

import (
	"context"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/policies/ignores"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	return server.Parts{
		Background: []jobs.Work{ignores.Background(d.Store)},
		Services: func(context.Context) ([]server.Service, error) {
			deprecated := NewPolicies(d.Store, d.Config.BaseURL())
			return []server.Service{
				server.Group[policiesv1.PoliciesServiceServer](policiesv1.RegisterPoliciesServiceServer, deprecated,
					policiesv1.RegisterPoliciesServiceHandlerClient, policiesv1.NewPoliciesServiceClient),
				server.Group[policiesv1.PoliciesV1ServiceServer](policiesv1.RegisterPoliciesV1ServiceServer, NewPoliciesV1(deprecated),
					policiesv1.RegisterPoliciesV1ServiceHandlerClient, policiesv1.NewPoliciesV1ServiceClient),
				server.Group[policiesv1.RuleboardServiceServer](policiesv1.RegisterRuleboardServiceServer, NewRuleboards(d.Store),
					policiesv1.RegisterRuleboardServiceHandlerClient, policiesv1.NewRuleboardServiceClient),
				server.Group[policiesv1.PoliciesV2ServiceServer](policiesv1.RegisterPoliciesV2ServiceServer, NewPoliciesV2(d.Store),
					policiesv1.RegisterPoliciesV2ServiceHandlerClient, policiesv1.NewPoliciesV2ServiceClient),
				server.Group[policiesv1.IgnoresServiceServer](policiesv1.RegisterIgnoresServiceServer, ignores.New(d.Store, d.Jobs),
					policiesv1.RegisterIgnoresServiceHandlerClient, policiesv1.NewIgnoresServiceClient),
			}, nil
		},
	}
}
