package telemetry

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3" // a pool to watch
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func TestLoggerAddsWhatTheContextKnows(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, "json", "info")
	if err != nil {
		t.Fatal(err)
	}
	outer := WithAttrs(t.Context(), slog.String("request_id", "a"))
	first := WithAttrs(outer, slog.String("deployment", "acme"))
	WithAttrs(outer, slog.String("deployment", "globex")) // must not reach the first
	provider := sdktrace.NewTracerProvider()
	first, span := provider.Tracer("test").Start(first, "x")
	defer span.End()
	log.With("a", 1, "cookie", "s=1").WithGroup("g").InfoContext(first, "hello", "token", "sgp_secret", "Authorization", "Bearer x",
		slog.Group("sent", "password", "hunter2", "size", 3), "last", 1)
	var record struct {
		Msg    string         `json:"msg"`
		Level  string         `json:"level"`
		A      int            `json:"a"`
		Cookie string         `json:"cookie"`
		G      map[string]any `json:"g"`
	}
	if err := json.Unmarshal(out.Bytes(), &record); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"request_id": "a", "deployment": "acme", "token": "[redacted]", "Authorization": "[redacted]",
		"trace_id": span.SpanContext().TraceID().String(),
	} {
		if record.G[key] != want {
			t.Errorf("%s is %v, want %v", key, record.G[key], want)
		}
	}
	if sent, _ := record.G["sent"].(map[string]any); sent["password"] != "[redacted]" || sent["size"] != 3. || record.Cookie != "[redacted]" {
		t.Errorf("got %s", out.String())
	}
	if record.Msg != "hello" || record.Level != "INFO" || record.A != 1 || record.G["last"] != 1. {
		t.Errorf("got %s", out.String())
	}
	out.Reset()
	log.DebugContext(first, "below the level")
	if out.Len() != 0 {
		t.Errorf("got %s", out.String())
	}
}

func TestLoggerRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct{ format, level, want string }{
		{"xml", "info", "log-format"}, {"text", "loud", "log-level"}, {"text", "info+2", "log-level"}, {"", "", "log-level"},
	} {
		if _, err := NewLogger(io.Discard, c.format, c.level); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q %q: got %v", c.format, c.level, err)
		}
	}
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	var logged bytes.Buffer
	m := NewMetrics(slog.New(slog.NewTextHandler(&logged, nil)), "v1.2.3", "abc", "go1")
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	m.WatchTransactions(func() int64 { return 3 })
	m.WatchPools(map[string]*sql.DB{"reader": db})
	var failure error
	m.WatchQueue(func(ctx context.Context) (map[string]int64, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the question has no deadline")
		}
		return map[string]int64{"default": 7}, failure
	})
	m.FindingsIngested.WithLabelValues("sast", "created").Add(3)
	text := scrape(t, m)
	for _, want := range []string{
		`palisade_build_info{go_version="go1",revision="abc",version="v1.2.3"} 1`,
		`go_sql_open_connections{db_name="reader"}`,
		`palisade_queue_depth{queue="default"} 7`,
		`palisade_db_transactions_waiting 3`,
		`palisade_findings_ingested_total{outcome="created",product="sast"} 3`,
		"palisade_panics_total 0", "palisade_unknown_json_fields_total 0",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	failure = errors.New("database is gone")
	if text := scrape(t, m); strings.Contains(text, "palisade_queue_depth{") || !strings.Contains(text, "palisade_build_info") {
		t.Error("a queue that cannot be read takes the scrape with it, or an old depth is shown")
	}
	if !strings.Contains(logged.String(), "database is gone") {
		t.Errorf("the failure is not logged: %s", logged.String())
	}
}

func TestTracingWanted(t *testing.T) {
	for _, c := range []struct {
		env    map[string]string
		wanted bool
		err    string
	}{
		{nil, false, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317"}, true, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4317"}, true, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317"}, false, ""},
		{map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, false, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, false, "OTEL_TRACES_EXPORTER"},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, false, "OTEL_EXPORTER_OTLP_PROTOCOL"},
	} {
		wanted, err := tracingWanted(func(name string) string { return c.env[name] })
		if wanted != c.wanted || (err == nil) != (c.err == "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%v: got %v, %v", c.env, wanted, err)
		}
	}
}

func TestTracingOffCostsNothing(t *testing.T) {
	for _, name := range []string{"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		t.Setenv(name, "")
	}
	tracing, err := StartTracing(t.Context(), slog.Default(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	next := http.NewServeMux()
	if tracing.Enabled() || tracing.ServerHandler() != nil || tracing.HTTP(next) != http.Handler(next) {
		t.Error("it is not off")
	}
	if err := tracing.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHTTPSpanContinuesTheCallers(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "renamed")
	spans := tracetest.NewInMemoryExporter()
	tracing, err := newTracing(t.Context(), "v1", sdktrace.WithSyncer(spans))
	if err != nil {
		t.Fatal(err)
	}
	var inside trace.SpanContext
	handler := tracing.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		inside = trace.SpanContextFromContext(r.Context())
	}))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/ping", nil)
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	if inside.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("trace %s", inside.TraceID())
	}
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	stubs := spans.GetSpans()
	if len(stubs) != 1 || stubs[0].Parent.SpanID().String() != "b7ad6b7169203331" {
		t.Fatalf("got %v", stubs)
	}
	if !strings.Contains(stubs[0].Resource.String(), "service.name=renamed") {
		t.Errorf("resource %s", stubs[0].Resource)
	}
	if tracing.ServerHandler() == nil {
		t.Error("no stats handler for the gRPC port")
	}
	if err := tracing.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
