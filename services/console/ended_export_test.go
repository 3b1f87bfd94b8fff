package console

import (
	"context"
	"log/slog"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
)

// DeleteEnded runs the periodic job once.
func DeleteEnded(ctx context.Context, st *store.Store, cfg config.Config) error {
	sessions := access.NewSessions(st, cfg.SessionIdle, cfg.SessionLifetime, slog.Default())
	defer func() { _ = sessions.Close(ctx) }()
	return (&endedWorker{store: st, sessions: sessions}).Work(ctx, nil)
}
