package server

import (
	"context"
	"log/slog"
	"maps"
	"net/http"

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
	// Sessions are the sessions of the console.
	Sessions *access.Sessions
	// OIDC verifies the users of the OpenID Connect issuer; nil without one.
	OIDC    *access.OIDC
	Metrics *telemetry.Metrics
	Egress  *egress.Guard
	Model   *llm.Provider
	Calls   *traffic.Calls
	Spool   *spool.Spool
	// State says whether the server is ready, as /readyz does.
	State func(ctx context.Context) (text string, ready bool)
	// Jobs is the queue, and Reports the database of reports. Both are set when Parts.Services is called.
	Jobs    *jobs.Jobs
	Reports *Reports

	shared map[any]any
}

// Shared returns the instance of a key that domains share, and creates it on first use. Domains are called one after
// the other.
func Shared[T any](d *Deps, key any, create func() T) T {
	if known, ok := d.shared[key].(T); ok {
		return known
	}
	if d.shared == nil {
		d.shared = map[any]any{}
	}
	made := create()
	d.shared[key] = made
	return made
}

// Parts are what a domain adds to a server.
type Parts struct {
	// Background is the domain's background work. The queue does not exist yet; a job finds it with jobs.FromContext.
	Background []jobs.Work
	// Services creates the service groups, on nodes that serve requests. nil means none.
	Services func(context.Context) ([]Service, error)
	// Documents are public JSON documents by their path, which never change while the server runs.
	Documents map[string][]byte
	// Sites serve all HTTP requests below their path, such as /console/.
	Sites map[string]http.Handler
	// Identify finds the caller of an HTTP request without an Authorization header; see gateway.Config. At most one
	// domain has it.
	Identify func(*http.Request) (context.Context, error)
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

// sites returns the sites of all domains, and the one function that identifies the callers of a session.
func sites(parts []Parts) (all map[string]http.Handler, identify func(*http.Request) (context.Context, error)) {
	all = map[string]http.Handler{}
	for _, p := range parts {
		maps.Copy(all, p.Sites)
		if p.Identify != nil {
			identify = p.Identify
		}
	}
	return all, identify
}

func documents(parts []Parts) map[string][]byte {
	all := map[string][]byte{}
	for _, p := range parts {
		maps.Copy(all, p.Documents)
	}
	return all
}
