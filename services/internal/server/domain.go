package server

import (
	"context"
	"log/slog"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/internal/traffic"
)

// Domain returns the parts that a domain adds to a server. It is called once, before the queue exists.
type Domain func(*Deps) Parts

// Deps are the dependencies of domains.
type Deps struct {
	Config  config.Config
	Log     *slog.Logger
	Store   *store.Store
	Keyring *secret.Keyring
	Trail   *audit.Trail
	Tokens  *access.Tokens
	Metrics *telemetry.Metrics
	Egress  *egress.Guard
	Model   *llm.Provider
	Calls   *traffic.Calls
	Spool   *spool.Spool
	// Jobs is the queue, and Reports the database of reports. Both are set when Parts.Services is called.
	Jobs    *jobs.Jobs
	Reports *Reports
}

// Parts are what a domain adds to a server.
type Parts struct {
	// Background is the domain's background work. The queue does not exist yet; a job finds it with jobs.FromContext.
	Background []jobs.Work
	// Services creates the service groups, on nodes that serve requests. nil means none.
	Services func(context.Context) ([]Service, error)
}

// Service is one service group: its handlers on the gRPC server, and its routes on the HTTP gateway.
type Service struct {
	// RegisterGRPC registers the handlers.
	RegisterGRPC func(grpc.ServiceRegistrar)
	// RegisterHTTP adds the routes to mux. They call the handlers through conn, which has every interceptor. nil means
	// no routes.
	RegisterHTTP func(ctx context.Context, mux *runtime.ServeMux, conn grpc.ClientConnInterface) error
}

// Group connects the handlers of a service group with its generated routes.
func Group[Handlers, Client any](
	registerGRPC func(grpc.ServiceRegistrar, Handlers), handlers Handlers,
	registerHTTP func(context.Context, *runtime.ServeMux, Client) error, client func(grpc.ClientConnInterface) Client,
) Service {
	return Service{
		RegisterGRPC: func(s grpc.ServiceRegistrar) { registerGRPC(s, handlers) },
		RegisterHTTP: func(ctx context.Context, mux *runtime.ServeMux, conn grpc.ClientConnInterface) error {
			return registerHTTP(ctx, mux, client(conn))
		},
	}
}

// GroupWithoutRoutes is a service group without generated HTTP routes.
func GroupWithoutRoutes[Handlers any](registerGRPC func(grpc.ServiceRegistrar, Handlers), handlers Handlers) Service {
	return Service{RegisterGRPC: func(s grpc.ServiceRegistrar) { registerGRPC(s, handlers) }}
}

// makeDomains calls each domain once.
func makeDomains(list []Domain, d *Deps) []Parts {
	parts := make([]Parts, len(list))
	for i, domain := range list {
		parts[i] = domain(d)
	}
	return parts
}

func background(parts []Parts) (work []jobs.Work) {
	for _, p := range parts {
		work = append(work, p.Background...)
	}
	return work
}

func services(ctx context.Context, parts []Parts) (groups []Service, err error) {
	for _, p := range parts {
		if p.Services == nil {
			continue
		}
		of, err := p.Services(ctx)
		if err != nil {
			return nil, err
		}
		groups = append(groups, of...)
	}
	return groups, nil
}
