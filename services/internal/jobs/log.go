package jobs

import (
	"context"
	"errors"
	"log/slog"
)

// riverLogger gives River's log the levels of ours.
func riverLogger(log *slog.Logger) *slog.Logger { return slog.New(riverHandler{log.Handler()}) }

// riverHandler lowers what River finds worth an information (every start, every five seconds with a job) to debug, and
// what goes wrong because we stop (a statement is interrupted) to an information.
type riverHandler struct{ slog.Handler }

func riverLevel(ctx context.Context, level slog.Level) slog.Level {
	switch {
	case level > slog.LevelInfo && errors.Is(ctx.Err(), context.Canceled):
		return slog.LevelInfo
	case level == slog.LevelInfo:
		return slog.LevelDebug
	}
	return level
}

// Enabled reports whether a record would be written.
func (h riverHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, riverLevel(ctx, level))
}

// Handle writes a record at our level.
func (h riverHandler) Handle(ctx context.Context, record slog.Record) error {
	record.Level = riverLevel(ctx, record.Level)
	return h.Handler.Handle(ctx, record)
}

// WithAttrs keeps the wrapper around the handler that it returns.
func (h riverHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return riverHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the wrapper around the handler that it returns.
func (h riverHandler) WithGroup(name string) slog.Handler {
	return riverHandler{h.Handler.WithGroup(name)}
}
