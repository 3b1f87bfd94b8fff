package findings

import (
	"context"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// decideFor returns the function of [triage.Decider].
func decideFor(st *store.Store) func(ctx context.Context, findingID int64, state, reason, note string) (triage.Outcome, error) {
	return func(ctx context.Context, findingID int64, state, reason, note string) (triage.Outcome, error) {
		b := &bulkUpdate{
			store: st, filter: &findingsv1.IssuesFilter{Ids: []int64{findingID}}, types: vocabulary.Products,
			decision: newDecision(ctx, jobs.FromContext(ctx), triage.KindTriage, state, reason, note),
		}
		n, _, err := b.apply(ctx, nil)
		return triage.Outcome{Found: n.Issues > 0, Changed: n.Updated > 0, Requested: n.Requested > 0}, err
	}
}
