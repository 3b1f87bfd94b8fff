package projects

import (
	"context"

	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
)

// scopes are what the caller may do with the repositories of a page.
type scopes struct {
	role access.Role
	// readOnly are the repositories that the caller's teams let the caller only read; nil if teams set no limits.
	readOnly map[int64]bool
}

// repoPermissions are the permissions behind the scopes.
var repoPermissions = []struct {
	permission optionsv1.Permission
	scope      projectsv1.RepoScope
}{
	{optionsv1.Permission_PERMISSION_READ, projectsv1.RepoScope_REPO_SCOPE_READ_FINDING},
	{optionsv1.Permission_PERMISSION_TRIAGE, projectsv1.RepoScope_REPO_SCOPE_TRIAGE_FINDING},
	{optionsv1.Permission_PERMISSION_MANAGE, projectsv1.RepoScope_REPO_SCOPE_MANAGE_PROJECT_SETTINGS},
	{optionsv1.Permission_PERMISSION_MANAGE, projectsv1.RepoScope_REPO_SCOPE_DELETE_PROJECT},
	{optionsv1.Permission_PERMISSION_MANAGE, projectsv1.RepoScope_REPO_SCOPE_ASSIGN_TEAM},
}

func (s scopes) of(projectID int64) (list []projectsv1.RepoScope) {
	for _, one := range repoPermissions {
		if access.Permits(s.role, one.permission) && (one.permission != optionsv1.Permission_PERMISSION_TRIAGE || !s.readOnly[projectID]) {
			list = append(list, one.scope)
		}
	}
	return list
}

// scopesOf applies the same limits as triage itself.
func (s *Repositories) scopesOf(ctx context.Context, ids []int64) (scopes, error) {
	caller, _ := access.FromContext(ctx)
	grant, _ := access.GrantFromContext(ctx)
	found := scopes{role: grant.Role}
	if grant.Role == access.RoleAdmin || caller.WithoutTeams {
		return found, nil
	}
	teams, err := access.TeamsOf(ctx, s.store.Reader, grant.DeploymentID, caller.UserID)
	if err != nil || !teams.Enabled {
		return found, err
	}
	triaged, err := s.store.Reader.Project.Query().Where(store.OneOf(project.FieldID, ids)).
		IDs(tenant.WithTeams(ctx, teams.IDs(access.TeamTriage)))
	if err != nil {
		return found, err
	}
	found.readOnly = make(map[int64]bool, len(ids))
	for _, id := range ids {
		found.readOnly[id] = true
	}
	for _, id := range triaged {
		delete(found.readOnly, id)
	}
	return found, nil
}
