package projects

import (
	"context"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
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
	grant, _ := access.GrantFromContext(ctx)
	readOnly, err := access.ReadOnlyProjects(ctx, s.store.Reader, ids)
	return scopes{role: grant.Role, readOnly: readOnly}, err
}
