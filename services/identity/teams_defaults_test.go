package identity_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/teamproject"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestDefaultTeams: administrators say which teams new projects and users join. Existing ones stay where they are.
func TestDefaultTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newTeamFixture(t, s, teamUsers, "acme/old")
		all := l.team(t, s.Token, `"name":"All","isProjectDefault":true,"isUserDefault":true,"users":[{"userId":"@mia","role":"TEAM_ROLE_MANAGER"}]`)
		has(t, l.do(t, s.Token, http.MethodGet, l.at("teams", all), ""), `"repositoryCount":"0"`, `"isProjectDefault":true,"isUserDefault":true`)
		none := l.team(t, s.Token, `"name":"None"`)
		has(t, l.do(t, s.Token, http.MethodGet, l.at("teams", none), ""), `"isProjectDefault":false,"isUserDefault":false`)

		// A manager changes neither, but may repeat what is set.
		l.refused(t, l.tokens["mia"], http.MethodPatch, l.at("teams", all), `{"team":{"isProjectDefault":false}}`, 403, "only administrators may change isProjectDefault")
		l.refused(t, l.tokens["mia"], http.MethodPost, l.at("teams"), fmt.Sprintf(`{"team":{"name":"Sub","parentTeamId":%d,"isUserDefault":true}}`, all), 403, "only administrators")
		l.do(t, l.tokens["mia"], http.MethodPatch, l.at("teams", all), `{"team":{"isProjectDefault":true}}`)

		members := func(team int64) []int64 {
			t.Helper()
			ids, err := s.Store.Reader.TeamProject.Query().Where(teamproject.TeamID(team)).Order(teamproject.ByProjectID()).All(s.System(t))
			if err != nil {
				t.Fatal(err)
			}
			var list []int64
			for _, row := range ids {
				list = append(list, row.ProjectID)
			}
			return list
		}
		s.Upload(t, "acme/new", "main", []byte(teamReport))
		s.Upload(t, "acme/new", "main", []byte(leakReport))
		id := s.Store.Reader.Project.Query().Where(project.Name("acme/new")).OnlyIDX(s.System(t))
		if got := fmt.Sprint(members(all), members(none)); got != fmt.Sprintf("[%d] []", id) {
			t.Errorf("the projects of the teams are %s, want the new one in the first", got)
		}

		// A member of none of the teams creates a project, which is in the default team at once, and keeps uploading to it.
		for range 2 {
			answer := s.Send(t, l.tokens["max"], http.MethodPost, "/api/v1/deployments/acme/reports?project=acme/max&ref=main", strings.NewReader(teamReport))
			if answer.Status != http.StatusOK {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
		}

		// Over gRPC: switched off, a new project joins no more, and left out means unchanged.
		client := identityv1.NewTeamsServiceClient(s.Conn)
		update := func(change *identityv1.TeamUpdate) *identityv1.Team {
			t.Helper()
			answer, err := client.UpdateDeploymentTeam(s.Context(t, s.Token), &identityv1.UpdateDeploymentTeamRequest{DeploymentId: s.DeploymentID, TeamId: all, Team: change})
			if err != nil {
				t.Fatal(err)
			}
			return answer.GetTeam()
		}
		if team := update(&identityv1.TeamUpdate{IsProjectDefault: proto.Bool(false)}); team.GetIsProjectDefault() || !team.GetIsUserDefault() {
			t.Errorf("got %v", team)
		}
		if team := update(&identityv1.TeamUpdate{Name: proto.String("Everyone")}); team.GetIsProjectDefault() || !team.GetIsUserDefault() {
			t.Errorf("got %v", team)
		}
		s.Upload(t, "acme/later", "main", []byte(teamReport))
		if got := members(all); len(got) != 2 || got[0] != id {
			t.Errorf("the projects of the team are %v, want no later one", got)
		}
	})
}
