package ai

import (
	"context"

	"github.com/palisade/palisade/services/internal/store"
)

// SuggestMemories runs the periodic job once.
func SuggestMemories(ctx context.Context, st *store.Store) error {
	return (&suggestWorker{memories: NewMemories(st)}).Work(ctx, nil)
}
