package ignores

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/internal/store"
	policy "github.com/palisade/palisade/services/policies/pathignore"
)

// Apply runs the job that applies the patterns of a deployment.
func Apply(ctx context.Context, st *store.Store, deploymentID int64) error {
	return (&applyWorker{store: st}).Work(ctx, &river.Job[policy.Apply]{Args: policy.Apply{DeploymentID: deploymentID}})
}
