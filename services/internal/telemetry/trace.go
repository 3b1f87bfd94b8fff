package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/stats"
)

// Tracing creates the spans of one server. It is off, and then costs nothing, unless the standard OTEL_ variables name
// an exporter.
type Tracing struct {
	provider trace.TracerProvider
	shutdown func(context.Context) error // nil when tracing is off
}

// propagators read and write the headers traceparent, tracestate and baggage.
var propagators = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// StartTracing reads the OTEL_ variables. It exports spans by OTLP over gRPC when OTEL_TRACES_EXPORTER is "otlp", or
// when that is not set and OTEL_EXPORTER_OTLP_ENDPOINT (or …_TRACES_ENDPOINT) is. The exporter, sampler, batch and
// resource variables of the specification apply. An unsupported choice is an error, so that an operator who requests
// traces does not find out later that there are none. log gets export errors.
func StartTracing(ctx context.Context, log *slog.Logger, version string) (*Tracing, error) {
	wanted, err := tracingWanted(os.Getenv)
	if err != nil || !wanted {
		return &Tracing{provider: noop.NewTracerProvider()}, err
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	t, err := newTracing(ctx, version, sdktrace.WithBatcher(exporter))
	if err != nil {
		return nil, err
	}
	// This is the only global: the library has no other way to report lost spans.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("tracing", "error", err) }))
	return t, nil
}

// newTracing returns a provider that sends spans to processor.
func newTracing(ctx context.Context, version string, processor sdktrace.TracerProviderOption) (*Tracing, error) {
	// Later detectors take precedence, so that OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override our defaults.
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithAttributes(
		attribute.String("service.name", "palisade"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdktrace.NewTracerProvider(processor, sdktrace.WithResource(res))
	return &Tracing{provider: provider, shutdown: provider.Shutdown}, nil
}

// tracingWanted decides from the variables that getenv reads.
func tracingWanted(getenv func(string) string) (bool, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	endpoint := getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") + getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return false, nil
	case "":
		if endpoint == "" {
			return false, nil
		}
	case "otlp":
	default:
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: got %q, want otlp or none", exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := getenv(name); protocol != "" && protocol != "grpc" {
			return false, fmt.Errorf("%s: got %q, want grpc", name, protocol)
		}
	}
	return true, nil
}

// Enabled reports whether spans are exported.
func (t *Tracing) Enabled() bool { return t.shutdown != nil }

// ServerHandler returns the stats handler of the gRPC port, nil when tracing is off. It only creates spans. Metrics are
// Prometheus metrics, without addresses in their labels.
func (t *Tracing) ServerHandler() stats.Handler {
	if !t.Enabled() {
		return nil
	}
	return otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithPropagators(propagators),
		otelgrpc.WithMeterProvider(metricnoop.NewMeterProvider()))
}

// HTTP wraps the HTTP handler so that each request has a span. In-process calls continue that span. When tracing is off
// it returns next itself.
func (t *Tracing) HTTP(next http.Handler) http.Handler {
	if !t.Enabled() {
		return next
	}
	return otelhttp.NewHandler(next, "http", otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(propagators),
		otelhttp.WithMeterProvider(metricnoop.NewMeterProvider()), otelhttp.WithFilter(notProbe))
}

// notProbe excludes health probes, which are frequent and uninteresting.
func notProbe(r *http.Request) bool { return r.URL.Path != "/healthz" && r.URL.Path != "/readyz" }

// Shutdown exports the pending spans, within the deadline of ctx.
func (t *Tracing) Shutdown(ctx context.Context) error {
	if !t.Enabled() {
		return nil
	}
	return t.shutdown(ctx)
}
