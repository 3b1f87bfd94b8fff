package sbom_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/user"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/exportfile"
)

// TestCallers: an SBOM belongs to the caller who started it. Nobody else learns whether it exists.
func TestCallers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		body := fmt.Sprintf(`{"repositoryId":"%d"}`, seed(t, s))
		rival := s.AddTenant(t, "rival")
		colleague := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "colleague", Role: access.RoleAdmin})
		token := start(t, s, s.Token, body)
		if state, text := task(t, s, s.Token, token); state != "TASK_STATUS_COMPLETED" {
			t.Fatalf("%s %s", state, text)
		}
		for _, path := range []string{v1(rival), v2(rival)} { // the project of another deployment
			s.Body(t, rival.Token, http.MethodPost, path, body, http.StatusNotFound)
		}
		s.Body(t, rival.Token, http.MethodPost, v2(s.Tenant), body, http.StatusNotFound)
		s.Body(t, "", http.MethodPost, v2(s.Tenant), body, http.StatusUnauthorized)
		unknown := s.Body(t, s.Token, http.MethodGet, v1(s.Tenant)+"/x.y.z", "", http.StatusNotFound)
		for name, c := range map[string]struct{ path, credential string }{
			"a colleague":        {v1(s.Tenant) + "/" + token, colleague},
			"another deployment": {v1(rival) + "/" + token, rival.Token},
			"a forged token":     {v1(s.Tenant) + "/" + token[:len(token)-4] + "AAAA", s.Token},
		} {
			if got := s.Body(t, c.credential, http.MethodGet, c.path, "", http.StatusNotFound); got != unknown {
				t.Errorf("%s: %s, want %s", name, got, unknown)
			}
		}
		for _, credential := range []string{colleague, rival.Token} {
			s.Body(t, credential, http.MethodGet, "/api/tasks/v2/"+token, "", http.StatusNotFound)
		}
		var other struct{ TaskTokenJwt string } // the task of an export of findings is no SBOM
		unmarshal(t, s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/issues/export", s.DeploymentID), `{}`, http.StatusAccepted), &other)
		if got := s.Body(t, s.Token, http.MethodGet, v1(s.Tenant)+"/"+other.TaskTokenJwt, "", http.StatusNotFound); got != unknown {
			t.Errorf("an export: %s", got)
		}
	})
}

// TestTeams: members see the SBOMs of their teams' projects. A job that begins after its caller lost the project fails,
// and the task tells why.
func TestTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		id := seed(t, s)
		body := fmt.Sprintf(`{"repositoryId":"%d"}`, id)
		member := s.AddUser(t, s.Tenant, "member@acme.test", access.RoleMember)
		var who int64
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			team, err := tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("Web").SetSlug("web").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			who = tx.User.Query().Where(user.Email("member@acme.test")).OnlyIDX(ctx)
			return errors.Join(
				tx.TeamMember.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetUserID(who).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(1).Exec(ctx),
				tx.TeamProject.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetProjectID(id).SetCreatedAt(1).Exec(ctx))
		})
		if err != nil {
			t.Fatal(err)
		}
		if state, text := task(t, s, member, start(t, s, member, body)); state != "TASK_STATUS_COMPLETED" || !strings.Contains(text, "left-pad") {
			t.Errorf("a member: %s %s", state, text)
		}
		err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.TeamProject.Delete().Exec(ctx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Body(t, member, http.MethodPost, v2(s.Tenant), body, http.StatusNotFound)
		late := late(t, s, who, id)
		var told string
		apitest.Eventually(t, "the job fails", func() bool {
			row := s.Store.Reader.Export.GetX(s.System(t), late)
			if row.CompletedAt != nil {
				t.Fatal("a former member has an SBOM")
			}
			told = row.Error
			return told != ""
		})
		if want := fmt.Sprintf("repository %d not found", id); told != want {
			t.Errorf("%q, want %q", told, want)
		}
	})
}

// late enqueues the job of a user who does not see the project any more.
func late(t *testing.T, s *apitest.Server, userID, projectID int64) (exportID int64) {
	t.Helper()
	request, err := proto.Marshal(&supplychainv1.GenerateSbomAsyncRequest{RepositoryId: projectID})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		row, err := exportfile.Create(ctx, tx, exportfile.Request{
			DeploymentID: s.DeploymentID, Format: exportfile.SBOM, Request: request, ActorKind: string(access.KindUser), ActorID: userID,
		})
		if err == nil {
			exportID = row.ID
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	cast, state, now := "", "'available'", "datetime('now', 'subsec')"
	if s.Store.Postgres() {
		cast, state, now = "::jsonb", "'available'::river_job_state", "now()"
	}
	_, writer := s.Store.DB()
	_, err = writer.ExecContext(t.Context(), fmt.Sprintf(`INSERT INTO river_job (kind, args, max_attempts, queue, priority, state, scheduled_at)
		VALUES ('write_sbom', ('{"deployment_id": %d, "export_id": %d}')%s, 3, 'sboms', 1, %s, %s)`, s.DeploymentID, exportID, cast, state, now))
	if err != nil {
		t.Fatal(err)
	}
	return exportID
}
