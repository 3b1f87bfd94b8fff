package supplychain

import (
	"context"

	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/tasktoken"
	"github.com/palisade/palisade/services/supplychain/sbom"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	return server.Parts{
		Background: []jobs.Work{Background(d.Store), ExploitsBackground(d.Store), sbom.Background(d.Store, d.Config.BaseURL(), d.Calls)},
		Services: func(context.Context) ([]server.Service, error) {
			sboms := sbom.New(d.Store, d.Jobs, tasktoken.New(d.Store, d.Keyring, d.Config.BaseURL()), d.Config.BaseURL())
			return []server.Service{
				server.Group[supplychainv1.PackageManagerConfigurationsServiceServer](supplychainv1.RegisterPackageManagerConfigurationsServiceServer, NewPackageManagers(d.Store, d.Keyring, d.Egress),
					supplychainv1.RegisterPackageManagerConfigurationsServiceHandlerClient, supplychainv1.NewPackageManagerConfigurationsServiceClient),
				server.Group[supplychainv1.SupplyChainServiceServer](supplychainv1.RegisterSupplyChainServiceServer, NewSupplyChain(d.Store),
					supplychainv1.RegisterSupplyChainServiceHandlerClient, supplychainv1.NewSupplyChainServiceClient),
				server.Group[supplychainv1.SbomsServiceServer](supplychainv1.RegisterSbomsServiceServer, sboms,
					supplychainv1.RegisterSbomsServiceHandlerClient, supplychainv1.NewSbomsServiceClient),
				server.Group[supplychainv1.MalwareFirewallServiceServer](supplychainv1.RegisterMalwareFirewallServiceServer, NewMalwareFirewall(d.Store, d.Jobs),
					supplychainv1.RegisterMalwareFirewallServiceHandlerClient, supplychainv1.NewMalwareFirewallServiceClient),
			}, nil
		},
	}
}
