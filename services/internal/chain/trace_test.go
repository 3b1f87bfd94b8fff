package chain_test

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
)

// The in-process connection passes no context values, but the span of the HTTP request must reach the handler.
func TestCallsContinueTheSpanOfTheirRequest(t *testing.T) {
	f := newFixture(t)
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	ctx, span := provider.Tracer("test").Start(as(t.Context(), f.admin), "GET")
	var inside trace.SpanContext
	f.handlers.get = func(ctx context.Context, _ *projectsv1.GetProjectRequest) error {
		inside = trace.SpanContextFromContext(ctx)
		return nil
	}
	f.logs.take(t)
	must(t, getProject(ctx, f.conns["http"], "acme"))
	span.End()
	if !inside.Equal(span.SpanContext()) {
		t.Errorf("the handler has span %v, want %v", inside.SpanID(), span.SpanContext().SpanID())
	}
	records, _ := f.logs.take(t)
	if len(records) != 1 || records[0]["trace_id"] != inside.TraceID().String() {
		t.Errorf("the log does not name the trace: %v", records)
	}
	if stubs := spans.GetSpans(); len(stubs) != 1 || len(stubs[0].Attributes) == 0 || stubs[0].Attributes[0].Value.AsString() != projectsv1.ProjectsService_GetProject_FullMethodName[1:] {
		t.Errorf("the span does not name the RPC: %v", stubs)
	}
}
