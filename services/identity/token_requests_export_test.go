package identity

import (
	"context"

	"github.com/palisade/palisade/services/internal/store"
)

// ExpireTokenRequests runs the periodic job once.
func ExpireTokenRequests(ctx context.Context, st *store.Store) error {
	return (&requestExpiryWorker{store: st}).Work(ctx, nil)
}
