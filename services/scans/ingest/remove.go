package ingest

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// Removal is why findings are removed without a scan.
type Removal struct {
	// ActorKind is who knows it, as in finding events.
	ActorKind string
	Reason    string
	// NamesFile appends the finding's file to the reason.
	NamesFile bool
}

// Remove removes the findings that are still open, with an event each, and returns their number. A scan that reports
// them again opens them again, with their triage. The transaction has to hold the lock of the project.
func Remove(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID int64, ids []int64, why Removal) (int, error) {
	change := stateChange{store: st, tx: tx, deploymentID: deploymentID, actorKind: why.ActorKind, at: store.Now()}
	return change.close(ctx, decision{state: lifecycle.Removed, prefix: why.Reason, about: why.NamesFile}, ids)
}
