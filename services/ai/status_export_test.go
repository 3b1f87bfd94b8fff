package ai

import (
	"context"
	"log/slog"

	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// EndStale ends old work without a job, as the sweep does once an hour.
func EndStale(ctx context.Context, st *store.Store) error {
	queue, err := jobs.New(st, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return NewAssistant(st, nil, nil, 0).endStale(ctx, queue)
}
