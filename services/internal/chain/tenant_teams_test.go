package chain_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
)

// addTeam creates a team in a deployment, below parent if that is not 0, and with one member if that is not 0.
func (f *fixture) addTeam(deploymentID, parent, member int64, role string) (id int64) {
	f.t.Helper()
	must(f.t, f.store.Write(tenant.NewContext(f.t.Context(), deploymentID), func(ctx context.Context, tx *ent.Tx) error {
		name := fmt.Sprint("team ", store.Now())
		create := tx.Team.Create().SetDeploymentID(deploymentID).SetName(name).SetSlug(name).SetCreatedAt(1).SetUpdatedAt(1)
		if parent != 0 {
			create.SetParentID(parent)
		}
		row, err := create.Save(ctx)
		if err != nil {
			return err
		}
		if id = row.ID; member == 0 {
			return nil
		}
		return tx.TeamMember.Create().SetDeploymentID(deploymentID).SetTeamID(id).SetUserID(member).SetRole(role).SetCreatedAt(1).Exec(ctx)
	}))
	return id
}

// Once there are teams, users see only their projects. Administrators and uploads are not limited.
func TestCallsAreLimitedToTeams(t *testing.T) {
	f := newFixture(t)
	ada := f.userToken(access.RoleMember)
	adaID := f.store.Reader.User.Query().Where(user.Email("ada@example.com")).OnlyIDX(tenant.System(t.Context()))
	_, herToken, err := f.tokens.Create(t.Context(), access.TokenSpec{
		DeploymentID: f.acme, UserID: adaID, Name: "test", Scopes: []access.Scope{access.ScopeWebAPI}, Role: access.RoleReadOnly,
	})
	must(t, err)

	var seen string
	note := func(ctx context.Context) error {
		ids, limited := tenant.Teams(ctx)
		seen = fmt.Sprint(limited, ids)
		return nil
	}
	f.handlers.get = func(ctx context.Context, _ *projectsv1.GetProjectRequest) error { return note(ctx) }
	f.handlers.upload = func(ctx context.Context, _ []*scansv1.UploadReportRequest) error { return note(ctx) }
	const open = "false []"
	require := func(conn grpc.ClientConnInterface, who, token, slug, want string) {
		t.Helper()
		_, err := projectsv1.NewProjectsServiceClient(conn).GetProject(as(t.Context(), token), &projectsv1.GetProjectRequest{DeploymentSlug: slug})
		must(t, err)
		if seen != want {
			t.Errorf("%s in %s: %s, want %s", who, slug, seen, want)
		}
	}
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		require(conn, "a member without teams", ada, "globex", open)
	})
	none := f.addTeam(f.acme, 0, 0, "")
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		require(conn, "a member of no team", ada, "acme", "true []")
		require(conn, "a member where there are no teams", ada, "globex", open)
	})
	top := f.addTeam(f.acme, 0, adaID, "TEAM_ROLE_MEMBER")
	below := f.addTeam(f.acme, top, 0, "")
	last := f.addTeam(f.acme, below, 0, "")
	foreign := f.addTeam(f.globex, 0, adaID, "TEAM_ROLE_READONLY")
	f.each(func(t *testing.T, conn grpc.ClientConnInterface, _ string) {
		require(conn, "a member", ada, "acme", fmt.Sprint(true, []int64{top, below, last}))
		require(conn, "her read-only token", herToken, "acme", fmt.Sprint(true, []int64{top, below, last}))
		require(conn, "a member elsewhere", ada, "globex", fmt.Sprint(true, []int64{foreign}))
		require(conn, "an administrator", f.admin, "acme", open)

		stream, err := scansv1.NewReportUploadsServiceClient(conn).UploadReport(as(t.Context(), ada))
		must(t, err)
		must(t, stream.Send(&scansv1.UploadReportRequest{DeploymentSlug: "acme", Target: &scansv1.UploadReportTarget{Project: "acme/web", Ref: "main"}}))
		_, err = stream.CloseAndRecv()
		must(t, err)
		if seen != open {
			t.Errorf("an upload: %s", seen)
		}
	})

	teams, err := access.TeamsOf(t.Context(), f.store.Reader, f.acme, adaID)
	must(t, err)
	if teams.Right(last) != access.TeamTriage || teams.Right(none) != 0 || len(teams.IDs(access.TeamManage)) != 0 || !teams.Enabled {
		t.Errorf("teams of a member: %+v", teams)
	}
}
