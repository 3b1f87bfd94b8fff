package server

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/fullstorydev/grpchan"
	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"

	"github.com/palisade/palisade/services/internal/chain"
	"github.com/palisade/palisade/services/internal/connlimit"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// clientsOfProxy is how many ordinary clients may share a connection or an address behind a proxy.
const clientsOfProxy = 10

// limitConnections limits the connections and the abandoned calls of each address on both API ports. The metrics port
// is internal.
func (s *Server) limitConnections(metrics *telemetry.Metrics) {
	calls := s.config.MaxStreams
	if s.config.BehindProxy {
		calls *= clientsOfProxy
	}
	limit := func(port string, to *net.Listener, unacked time.Duration) {
		*to = connlimit.New(connlimit.Config{
			Port: port, Connections: s.config.ConnectionLimit(), Calls: calls, UnackedTimeout: unacked,
			Log: s.log, Closed: func(reason string) { metrics.ConnectionsClosed.WithLabelValues(port, reason).Inc() },
		}).Listener(*to)
	}
	limit("http", &s.listeners.http, 0)
	limit("grpc", &s.listeners.grpc, pingTimeout) // as grpc does itself on connections that are not wrapped
	s.http.ConnContext = connlimit.ConnContext
	s.http.Handler = connlimit.Handler(s.http.Handler)
}

// countAbandoned counts the calls of the gRPC port that their clients abandon. It is outside all other links, because
// they refuse calls.
var countAbandoned = chain.Link{
	Name: "abandoned calls",
	Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		defer connlimit.Begin(ctx).End()
		return handler(ctx, req)
	},
	Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		defer connlimit.Begin(ss.Context()).End()
		return handler(srv, ss)
	},
}

// countUndecoded makes the unary calls of a service count that are abandoned before their message has arrived. It is
// for services that no links protect: there, grpc receives the message before it calls an interceptor.
func countUndecoded(desc *grpc.ServiceDesc) *grpc.ServiceDesc {
	counted := *desc
	counted.Methods = slices.Clone(desc.Methods)
	for i, method := range counted.Methods {
		counted.Methods[i].Handler = func(
			service any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor,
		) (any, error) {
			defer connlimit.Begin(ctx).End()
			return method.Handler(service, ctx, decode, interceptor)
		}
	}
	return &counted
}

// countLost counts the calls that reach no interceptor: of methods that do not exist, and with a timeout that is over
// before they begin. It never refuses a call: grpc would keep the context of a refused call until its timeout, which
// the client chooses.
func countLost(handlers grpchan.HandlerMap) tap.ServerInHandle {
	known := map[string]bool{}
	for name, info := range handlers.GetServiceInfo() {
		for _, method := range info.Methods {
			known["/"+name+"/"+method.Name] = true
		}
	}
	return func(ctx context.Context, info *tap.Info) (context.Context, error) {
		if !known[info.FullMethodName] || ctx.Err() != nil {
			connlimit.Abandon(ctx)
		}
		return ctx, nil
	}
}
