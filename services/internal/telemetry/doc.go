// Package telemetry provides structured logs, Prometheus metrics and OpenTelemetry traces for operators. It does not
// know requests; the interceptors of package chain feed it.
//
// Nothing is global: each server has its own logger, registry and tracer, so that several can run in one process.
package telemetry
