package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// NewLogger returns a logger that writes to w. format is "text" or "json"; level is "debug", "info", "warn" or "error".
// Records that are logged with a context carry its attributes (see WithAttrs) and its trace ids. If w is a LogBuffer,
// warnings and errors are flushed at once.
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var threshold slog.Level
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, level) {
		return nil, fmt.Errorf("log-level: got %q, want debug, info, warn or error", level)
	}
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log-level: %w", err)
	}
	options := &slog.HandlerOptions{Level: threshold}
	buffer, _ := w.(*LogBuffer)
	switch format {
	case "text":
		return slog.New(contextHandler{slog.NewTextHandler(w, options), buffer}), nil
	case "json":
		return slog.New(contextHandler{slog.NewJSONHandler(w, options), buffer}), nil
	}
	return nil, fmt.Errorf("log-format: got %q, want text or json", format)
}

// secretKeys are names under which a careless log call might pass a credential.
var secretKeys = []string{"authorization", "cookie", "password", "secret", "token"}

// redact replaces the values of such names and reports whether there were any. It does not change attrs. It is only a
// safety net: credentials must not be logged in the first place. (slog's ReplaceAttr does the same, but also turns
// time, level and message into attributes.)
func redact(attrs []slog.Attr) (clean []slog.Attr, found bool) {
	clean = attrs
	for i, a := range attrs {
		if a, secret := redactOne(a); secret {
			if !found {
				clean, found = slices.Clone(attrs), true
			}
			clean[i] = a
		}
	}
	return clean, found
}

func redactOne(a slog.Attr) (slog.Attr, bool) {
	if slices.Contains(secretKeys, strings.ToLower(a.Key)) {
		return slog.String(a.Key, "[redacted]"), true
	}
	if value := a.Value.Resolve(); value.Kind() == slog.KindGroup {
		if clean, found := redact(value.Group()); found {
			return slog.Attr{Key: a.Key, Value: slog.GroupValue(clean...)}, true
		}
	}
	return a, false
}

// redactRecord is redact for a whole record.
func redactRecord(r slog.Record) slog.Record {
	found := false
	r.Attrs(func(a slog.Attr) bool {
		_, found = redactOne(a)
		return !found
	})
	if !found {
		return r
	}
	clean := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		a, _ = redactOne(a)
		clean.AddAttrs(a)
		return true
	})
	return clean
}

type attrsKey struct{}

// WithAttrs returns a context whose log records carry attrs, after the attributes of ctx itself.
func WithAttrs(ctx context.Context, attrs ...slog.Attr) context.Context {
	return context.WithValue(ctx, attrsKey{}, append(slices.Clip(Attrs(ctx)), attrs...))
}

// Attrs returns the attributes that WithAttrs put into ctx.
func Attrs(ctx context.Context) []slog.Attr {
	attrs, _ := ctx.Value(attrsKey{}).([]slog.Attr)
	return attrs
}

// Inline returns attrs as one attribute, which handlers write as separate ones. A record has room for five attributes;
// more need an allocation.
func Inline(attrs []slog.Attr) slog.Attr { return slog.Attr{Value: slog.GroupValue(attrs...)} }

// maxCause is the longest logged cause in bytes.
const maxCause = 400

// Cause is the attribute "cause" with a text that somebody else chose: a server's reply, or claims of anybody's token.
func Cause(text string) slog.Attr {
	return slog.String("cause", strings.ToValidUTF8(text[:min(len(text), maxCause)], ""))
}

// contextHandler adds the attributes of the context to each record.
type contextHandler struct {
	slog.Handler
	buffer *LogBuffer // nil when the handler writes to something else
}

// Handle writes one record.
func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(Inline(Attrs(ctx)))
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	err := h.Handler.Handle(ctx, redactRecord(r))
	if r.Level >= slog.LevelWarn && h.buffer != nil {
		err = errors.Join(err, h.buffer.Flush())
	}
	return err
}

// WithAttrs wraps the new handler again.
func (h contextHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean, _ := redact(attrs)
	return contextHandler{h.Handler.WithAttrs(clean), h.buffer}
}

// WithGroup wraps the new handler again.
func (h contextHandler) WithGroup(name string) slog.Handler {
	return contextHandler{h.Handler.WithGroup(name), h.buffer}
}
