package identity

import (
	"context"

	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
)

// ExpireTokenRequests runs the periodic job once.
func ExpireTokenRequests(ctx context.Context, st *store.Store) error {
	return (&requestExpiryWorker{store: st, tokens: access.NewTokens(st)}).Work(ctx, nil)
}
