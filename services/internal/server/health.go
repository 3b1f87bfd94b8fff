package server

import (
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gateway"
)

const (
	// healthMessage is the largest message of a probe in bytes, both as received and decompressed. Anyone can send one.
	healthMessage = 4 << 10
	// healthStreams is the number of concurrent probes on one connection.
	healthStreams = 16
)

// openHealth creates the servers of both API ports of a node without the role api. They answer probes and refuse
// everything else with an error that names the wrong role.
func (s *Server) openHealth(p portParts) {
	s.drain = func() {} // all streams belong to the health service, which ends them when it stops
	wrongNode := apierr.Unavailable(nil, "this node serves no API, its roles are %q: send requests to a node with the role api", s.config.Roles)

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.probes.live)
	mux.HandleFunc("GET /readyz", s.probes.readiness)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { apierr.WriteHTTP(w, wrongNode, "") })
	s.http = gateway.NewHTTPServer(gateway.ServerConfig{
		TLS: p.tls, MaxHeaderBytes: int(s.config.MaxHeader), MaxStreams: s.config.MaxStreams, IdleTimeout: s.config.IdleTimeout, Logger: s.log,
	}, mux)

	options := append(connectionLimits(s.config), grpc.MaxRecvMsgSize(healthMessage), grpc.MaxConcurrentStreams(healthStreams),
		grpc.StreamInterceptor(countAbandoned.Stream),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return apierr.Map(wrongNode) }))
	if p.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(p.tls)))
	}
	s.grpc = grpc.NewServer(options...)
	s.grpc.RegisterService(countUndecoded(&healthv1.Health_ServiceDesc), s.probes.health)
}
