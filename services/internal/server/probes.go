package server

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// readyTimeout limits the database query of a readiness probe.
const readyTimeout = 2 * time.Second

// probes report liveness and readiness, over HTTP and gRPC.
type probes struct {
	ping   func(context.Context) error
	disk   func() (problem string, full bool)
	health *health.Server
	ready  atomic.Bool
	// corrupt is set when the database is corrupt.
	corrupt atomic.Bool
	// refusing is why the database refuses writes; nil while it accepts them.
	refusing atomic.Pointer[string]
	// refusal wakes the write probe after a call found that the database refuses writes.
	refusal  chan struct{}
	services []string
}

// newProbes returns probes of a server that is not ready yet.
func newProbes(ping func(context.Context) error, disk func() (problem string, full bool)) *probes {
	p := &probes{ping: ping, disk: disk, health: health.NewServer(), refusal: make(chan struct{}, 1)}
	p.health.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	return p
}

// serving marks the server and each of its services as ready.
func (p *probes) serving(services []string) {
	p.services = append([]string{""}, services...)
	p.setStatus(healthv1.HealthCheckResponse_SERVING)
	p.ready.Store(true)
}

// setStatus sets the gRPC health status of all services. After health.Shutdown it does nothing.
func (p *probes) setStatus(state healthv1.HealthCheckResponse_ServingStatus) {
	for _, name := range p.services {
		p.health.SetServingStatus(name, state)
	}
}

// refused makes the node not ready, until writable. It reports whether the node was ready. The reason is public.
func (p *probes) refused(reason string) (changed bool) {
	if changed = p.refusing.Swap(&reason) == nil; changed {
		p.setStatus(healthv1.HealthCheckResponse_NOT_SERVING)
	}
	return changed
}

// writable undoes refused.
func (p *probes) writable() (changed bool) {
	if changed = p.refusing.Swap(nil) != nil; changed {
		p.setStatus(healthv1.HealthCheckResponse_SERVING)
	}
	return changed
}

// stopping makes the node not ready for good.
func (p *probes) stopping() {
	p.ready.Store(false)
	p.health.Shutdown()
}

// live is /healthz: the process answers. It must not depend on the database, or an orchestrator would restart every
// node during a database outage.
func (p *probes) live(w http.ResponseWriter, _ *http.Request) {
	writeProbe(w, http.StatusOK, "ok")
}

// readiness is /readyz.
func (p *probes) readiness(w http.ResponseWriter, r *http.Request) {
	code := http.StatusOK
	text, ready := p.state(r.Context())
	if !ready {
		code = http.StatusServiceUnavailable
	}
	writeProbe(w, code, text)
}

// state reports whether the server accepts requests, its database answers and accepts writes, and its disk is not full.
// The text is public: it says what is wrong, or lacking in a ready server.
func (p *probes) state(ctx context.Context) (text string, ready bool) {
	if !p.ready.Load() {
		return "not serving: starting or stopping", false
	}
	if p.corrupt.Load() {
		return "the database is corrupt; see the log", false
	}
	if reason := p.refusing.Load(); reason != nil {
		return *reason, false
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := p.ping(ctx); err != nil {
		return "the database does not answer", false // the log of the failing requests has the cause
	}
	// Below the reserve everything except uploads works, so a load balancer should keep the node. On a full disk hardly
	// anything works.
	switch problem, full := p.disk(); {
	case full:
		return problem, false
	case problem != "":
		return "degraded: " + problem, true
	}
	return "ok", true
}

func writeProbe(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // a client that has gone needs no response
}

// jsonDocument serves a public JSON document.
func jsonDocument(document []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document) // a client that has gone is not our error
	})
}
