package findings_test

import (
	"context"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/teamproject"
	"github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// memberOf returns the credential of a member whose only team has one project.
func memberOf(t testing.TB, s *apitest.Server, l *fixture, project string) string {
	t.Helper()
	mia := s.AddUser(t, s.Tenant, "mia@acme.test", access.RoleMember)
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		id, err := tx.User.Query().Where(user.Email("mia@acme.test")).OnlyID(ctx)
		if err != nil {
			return err
		}
		team, err := tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("Web").SetSlug("web").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
		if err != nil {
			return err
		}
		err = tx.TeamProject.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetProjectID(l.projects[project]).SetCreatedAt(1).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.TeamMember.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetUserID(id).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return mia
}

// leaveTeam replaces the project of all teams by another one.
func leaveTeam(t testing.TB, s *apitest.Server, l *fixture, project, by string) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		link, err := tx.TeamProject.Query().Where(teamproject.ProjectID(l.projects[project])).Only(ctx)
		if err != nil {
			return err
		}
		if err := tx.TeamProject.DeleteOneID(link.ID).Exec(ctx); err != nil {
			return err
		}
		return tx.TeamProject.Create().SetDeploymentID(s.DeploymentID).SetTeamID(link.TeamID).SetProjectID(l.projects[by]).SetCreatedAt(1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}
