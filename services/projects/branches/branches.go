// Package branches knows the primary branch of a project, and records when it became another one.
package branches

import (
	"cmp"
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/store"
)

// Primary is the branch of a project that reports count: the one that a person set, or else the default branch. It is
// empty if neither is known.
func Primary(of *ent.Project) string { return cmp.Or(of.PrimaryBranch, of.DefaultBranch) }

// Record records in tx that a change of a project made another branch its primary branch, so that reports of the past
// still count the former one. Every change of a project's branches calls it. A project without a branch before or
// afterwards counts all refs, and has no former branch.
func Record(ctx context.Context, tx *ent.Tx, before, after *ent.Project) error {
	from, to := Primary(before), Primary(after)
	if from == to || from == "" || to == "" {
		return nil
	}
	return tx.BranchChange.Create().SetDeploymentID(after.DeploymentID).SetProjectID(after.ID).SetFromRef(from).SetToRef(to).SetAt(store.Now()).Exec(ctx)
}
