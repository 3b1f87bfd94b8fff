// Package telemetry is what operators see of a running server: structured logs, Prometheus metrics and OpenTelemetry
// traces. It knows nothing of requests; the interceptors of package chain feed it.
//
// Nothing here is global: each server has its own logger, registry and tracer, so that several can run in one process.
package telemetry
