package access

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// ReadOnlyProjects returns the projects among ids whose findings the caller's teams let the caller only read; nil if
// teams set no limits. These are the limits of triage itself.
func ReadOnlyProjects(ctx context.Context, db *ent.Client, ids []int64) (map[int64]bool, error) {
	caller, called := FromContext(ctx)
	grant, in := GrantFromContext(ctx)
	if !called || !in || grant.Role == RoleAdmin || caller.WithoutTeams {
		return nil, nil
	}
	teams, err := TeamsOf(ctx, db, grant.DeploymentID, caller.UserID)
	if err != nil || !teams.Enabled {
		return nil, err
	}
	triaged, err := db.Project.Query().Where(store.OneOf(project.FieldID, ids)).IDs(tenant.WithTeams(ctx, teams.IDs(TeamTriage)))
	if err != nil {
		return nil, err
	}
	readOnly := make(map[int64]bool, len(ids))
	for _, id := range ids {
		readOnly[id] = true
	}
	for _, id := range triaged {
		delete(readOnly, id)
	}
	return readOnly, nil
}
