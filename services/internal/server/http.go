package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/fullstorydev/grpchan"

	"github.com/palisade/palisade/gen/openapi"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/chain"
	"github.com/palisade/palisade/services/internal/gateway"
	"github.com/palisade/palisade/services/internal/inprocess"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// httpParts are the dependencies of the HTTP port.
type httpParts struct {
	config   config.Config
	log      *slog.Logger
	groups   []Service
	handlers grpchan.HandlerMap
	links    []chain.Link
	rules    *access.Rules
	issuer   *access.Issuer
	probes   *probes
	metrics  *telemetry.Metrics
	tracing  *telemetry.Tracing
	tls      *tls.Config // nil for plain HTTP
	// documents are public JSON documents by path.
	documents map[string][]byte
	sites     map[string]http.Handler
	// identify finds the callers of sessions; nil without them.
	identify func(*http.Request) (context.Context, error)
}

// httpServer creates the server of the HTTP port. The gateway calls the same handlers through the same links as the
// gRPC port. Few routes are not RPCs.
func httpServer(parts httpParts) (*http.Server, error) {
	cfg := parts.config
	unary, stream := chain.Interceptors(parts.links)
	conn := inprocess.New(inprocess.Config{Unary: unary, Stream: stream, Logger: parts.log})
	parts.handlers.ForEach(conn.RegisterService)
	routes := map[string]http.Handler{
		"/healthz":               http.HandlerFunc(parts.probes.live),
		"/readyz":                http.HandlerFunc(parts.probes.readiness),
		"/openapi.json":          jsonDocument(openapi.JSON),
		"/.well-known/jwks.json": parts.issuer.JWKS(),
		"/login":                 newLoginPage(cfg.OIDCClientID != ""),
	}
	for path, document := range parts.documents {
		routes[path] = jsonDocument(document)
	}
	handler, err := gateway.New(gateway.Config{
		Conn:          conn,
		Services:      exposed(parts.groups),
		Rules:         parts.rules.Rule,
		Routes:        routes,
		Sites:         parts.sites,
		Identify:      parts.identify,
		Spellings:     spellings,
		Page:          newLinkPages(cfg.BaseURL()).Page,
		HSTS:          parts.tls != nil || cfg.BehindProxy,
		MaxBody:       int64(cfg.MaxBody),
		MaxUpload:     int64(cfg.MaxUpload),
		Timeout:       cfg.RequestTimeout,
		UploadTimeout: cfg.UploadTimeout,
		UploadPace:    cfg.Pace(),
		UnknownFields: func(_ string, count int) { parts.metrics.UnknownFields.Add(float64(count)) },
		Logger:        parts.log,
	})
	if err != nil {
		return nil, fmt.Errorf("HTTP routes: %w", err)
	}
	return gateway.NewHTTPServer(gateway.ServerConfig{
		TLS:            parts.tls,
		MaxHeaderBytes: int(cfg.MaxHeader),
		MaxStreams:     cfg.MaxStreams,
		IdleTimeout:    cfg.IdleTimeout,
		Logger:         parts.log,
	}, parts.tracing.HTTP(handler)), nil
}

// exposed lists the services of the groups with their routes, under the names that they register.
func exposed(list []Service) []gateway.Service {
	var services []gateway.Service
	for _, group := range list {
		handlers := grpchan.HandlerMap{}
		group.RegisterGRPC(handlers)
		routes := group.RegisterHTTP
		for _, name := range serviceNames(handlers) {
			services = append(services, gateway.Service{Name: name, Register: routes})
			routes = nil // one registration adds all routes of the group
		}
	}
	return services
}
