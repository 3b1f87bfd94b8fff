package jobs

import (
	"context"
	"errors"
	"log/slog"
)

// riverLogger maps River's log levels to Palisade's.
func riverLogger(log *slog.Logger) *slog.Logger { return slog.New(riverHandler{log.Handler()}) }

// riverHandler lowers River's INFO records (each start, every five seconds with a job) to DEBUG, and errors that a
// stop causes (an interrupted statement) to INFO.
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

// Enabled implements slog.Handler.
func (h riverHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, riverLevel(ctx, level))
}

// Handle implements slog.Handler.
func (h riverHandler) Handle(ctx context.Context, record slog.Record) error {
	record.Level = riverLevel(ctx, record.Level)
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h riverHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return riverHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h riverHandler) WithGroup(name string) slog.Handler {
	return riverHandler{h.Handler.WithGroup(name)}
}
