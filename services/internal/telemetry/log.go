package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// NewLogger returns a logger that writes to w. format is "text" or "json"; level is "debug", "info", "warn" or "error".
// Records that are logged with a context carry its attributes (see WithAttrs) and the ids of its trace.
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var threshold slog.Level
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, level) {
		return nil, fmt.Errorf("log-level: got %q, want debug, info, warn or error", level)
	}
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log-level: %w", err)
	}
	options := &slog.HandlerOptions{Level: threshold, ReplaceAttr: redact}
	switch format {
	case "text":
		return slog.New(contextHandler{slog.NewTextHandler(w, options)}), nil
	case "json":
		return slog.New(contextHandler{slog.NewJSONHandler(w, options)}), nil
	}
	return nil, fmt.Errorf("log-format: got %q, want text or json", format)
}

// secretKeys are names under which a careless log call might pass a credential.
var secretKeys = []string{"authorization", "cookie", "password", "secret", "token"}

// redact is a safety net, not the rule: the rule is that nobody logs a credential in the first place.
func redact(_ []string, a slog.Attr) slog.Attr {
	if slices.Contains(secretKeys, strings.ToLower(a.Key)) {
		return slog.String(a.Key, "[redacted]")
	}
	return a
}

type attrsKey struct{}

// WithAttrs returns a context whose log records carry attrs, after those of ctx itself.
func WithAttrs(ctx context.Context, attrs ...slog.Attr) context.Context {
	return context.WithValue(ctx, attrsKey{}, append(slices.Clip(Attrs(ctx)), attrs...))
}

// Attrs returns the attributes that WithAttrs put into ctx.
func Attrs(ctx context.Context) []slog.Attr {
	attrs, _ := ctx.Value(attrsKey{}).([]slog.Attr)
	return attrs
}

// contextHandler adds to each record what the context knows.
type contextHandler struct{ slog.Handler }

// Handle writes one record.
func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(Attrs(ctx)...)
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the wrapper around the handler that it returns.
func (h contextHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return contextHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the wrapper around the handler that it returns.
func (h contextHandler) WithGroup(name string) slog.Handler {
	return contextHandler{h.Handler.WithGroup(name)}
}
