package ticketing

import (
	"context"

	ticketingv1 "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	t := &desk{store: d.Store, seals: connect.Seals{Keyring: d.Keyring}, egress: d.Egress, publicURL: d.Config.BaseURL()}
	return server.Parts{
		Background: []jobs.Work{t.background(d.Log)},
		Services: func(context.Context) ([]server.Service, error) {
			return []server.Service{
				server.Group[ticketingv1.TicketingServiceServer](ticketingv1.RegisterTicketingServiceServer, &Tickets{desk: t},
					ticketingv1.RegisterTicketingServiceHandlerClient, ticketingv1.NewTicketingServiceClient),
				server.Group[ticketingv1.ExternalTicketingServiceServer](ticketingv1.RegisterExternalTicketingServiceServer, &ExternalTickets{desk: t},
					ticketingv1.RegisterExternalTicketingServiceHandlerClient, ticketingv1.NewExternalTicketingServiceClient),
			}, nil
		},
	}
}

// desk creates, links and unlinks tickets.
type desk struct {
	store     *store.Store
	seals     connect.Seals
	egress    *egress.Guard
	publicURL string
}
