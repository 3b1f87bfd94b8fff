package server

import (
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// metricsServer serves the metrics port: plain HTTP without authentication, for an internal network. It closes after
// the API ports, so that a stopping server can still be observed.
func metricsServer(cfg config.Config, log *slog.Logger, metrics *telemetry.Metrics, p *probes) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler())
	mux.HandleFunc("GET /healthz", p.live)
	mux.HandleFunc("GET /readyz", p.readiness)
	if cfg.Pprof {
		// Not /debug/pprof/cmdline: the command line may contain the bootstrap token.
		mux.HandleFunc("GET /debug/pprof/", profile)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    int(cfg.MaxHeader),
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// profile is pprof.Index without cmdline.
func profile(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/debug/pprof/cmdline" {
		http.NotFound(w, r)
		return
	}
	pprof.Index(w, r)
}
