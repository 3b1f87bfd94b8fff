package scans

import (
	"context"
	"log/slog"

	"github.com/palisade/palisade/services/internal/store"
)

// PurgeCoverages is what a periodic job does.
var PurgeCoverages = purgeCoverages

// UpgradeIdentities is what a job does after a start.
func UpgradeIdentities(ctx context.Context, st *store.Store, log *slog.Logger) error {
	return (&upgradeWorker{store: st, log: log}).Work(ctx, nil)
}
