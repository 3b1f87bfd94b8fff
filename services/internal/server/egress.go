package server

import (
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/store"
)

// OpenGuard creates the egress guard.
func OpenGuard(cfg config.Config, log *slog.Logger) (*egress.Guard, error) {
	return egress.New(egress.Config{Allow: cfg.EgressAllow, UserAgent: "Palisade/" + config.Version, Log: log})
}

// openOIDC creates the verifier of the configured issuer, or nil without one.
func openOIDC(cfg config.Config, st *store.Store, trail *audit.Trail, log *slog.Logger) (*access.OIDC, error) {
	if cfg.OIDCIssuer == "" {
		return nil, nil
	}
	client, err := IssuerClient(cfg, log)
	if err != nil {
		return nil, err
	}
	signIn, err := cfg.SignIn()
	if err != nil {
		return nil, err
	}
	return access.NewOIDC(st, access.OIDCOptions{
		Issuer: cfg.OIDCIssuer, Audience: cfg.OIDCAudience, SignIn: signIn, Trail: trail, Client: client, Log: log,
	})
}

// IssuerClient returns a client for the OpenID Connect issuer. The issuer may be on an internal host, because the
// operator configured it. If its keys are on another internal host, that host needs an entry in egress-allow.
func IssuerClient(cfg config.Config, log *slog.Logger) (*http.Client, error) {
	guard, err := OpenGuard(cfg, log)
	if err != nil {
		return nil, err
	}
	issuer, err := url.Parse(cfg.OIDCIssuer)
	if err != nil {
		return nil, err
	}
	port := issuer.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[issuer.Scheme]
	}
	if guard, err = guard.Allowing(net.JoinHostPort(issuer.Hostname(), port)); err != nil {
		return nil, err
	}
	return guard.Client(egress.Limits{Timeout: 10 * time.Second, MaxResponse: 1 << 20, MaxRedirects: 3}), nil
}
