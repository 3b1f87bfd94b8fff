package rules

import (
	"context"

	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/rules/document"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	return server.Parts{
		Documents: map[string][]byte{schemaPath: document.FileSchema()},
		Services: func(context.Context) ([]server.Service, error) {
			return []server.Service{
				server.Group[rulesv1.RulesServiceServer](rulesv1.RegisterRulesServiceServer, NewRules(d.Store),
					rulesv1.RegisterRulesServiceHandlerClient, rulesv1.NewRulesServiceClient),
				server.Group[rulesv1.ScannerRulesServiceServer](rulesv1.RegisterScannerRulesServiceServer, NewScannerRules(d.Store, d.Config.BaseURL()),
					rulesv1.RegisterScannerRulesServiceHandlerClient, rulesv1.NewScannerRulesServiceClient),
			}, nil
		},
	}
}
