package identity_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestTeamManagers tests what a manager may do: with the own team, in subteams, and nowhere else.
func TestTeamManagers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newTeamFixture(t, s, teamUsers, "acme/web", "acme/api", "acme/ops")
		for _, name := range []string{"mia", "max"} { // there are no managers yet
			l.refused(t, l.tokens[name], http.MethodPost, l.at("teams"), `{"team":{"name":"Mine"}}`, 403, "only administrators")
		}
		own := l.team(t, s.Token, `"name":"Own","repositoryIds":[#acme/web],"users":[{"userId":"@mia","role":"TEAM_ROLE_MANAGER"},{"userId":"@max"},{"userId":"@roy","role":"TEAM_ROLE_MANAGER"}]`)
		below := l.team(t, s.Token, fmt.Sprintf(`"name":"Below","parentTeamId":%d,"repositoryIds":[#acme/api]`, own))
		foreign := l.team(t, s.Token, `"name":"Foreign","repositoryIds":[#acme/ops],"users":[{"userId":"@max"}]`)
		mia, max, roy := l.tokens["mia"], l.tokens["max"], l.tokens["roy"]

		// The own team: members and projects, not the name and not deletion.
		l.do(t, mia, http.MethodPatch, l.at("teams", own), `{"team":{"name":"Own","users":[{"userId":"@ida","action":"UPDATE_ACTION_ADD"}],"repositories":[{"repositoryId":#acme/api,"action":"UPDATE_ACTION_ADD"}]}}`)
		l.refused(t, mia, http.MethodPatch, l.at("teams", own), `{"team":{"name":"Ours"}}`, 403, "may rename")
		l.refused(t, mia, http.MethodDelete, l.at("teams", own), "", 403, "may delete")
		l.refused(t, mia, http.MethodPatch, l.at("teams", own), `{"team":{"repositories":[{"repositoryId":#acme/ops,"action":"UPDATE_ACTION_ADD"}]}}`, 400, "got #acme/ops")
		l.refused(t, mia, http.MethodPost, l.at("teams"), `{"team":{"name":"Top"}}`, 403, "team.parentTeamId")

		// Subteams: everything, except deleting a team with subteams.
		sub := l.team(t, mia, fmt.Sprintf(`"name":"Sub","parentTeamId":%d,"repositoryIds":[#acme/web],"users":[{"userId":"@max","role":"TEAM_ROLE_READONLY"}]`, below))
		l.refused(t, mia, http.MethodPost, l.at("teams"), fmt.Sprintf(`{"team":{"name":"N","parentTeamId":%d,"repositoryIds":[#acme/ops]}}`, own), 400, "got #acme/ops")
		has(t, l.do(t, mia, http.MethodPatch, l.at("teams", below), `{"team":{"name":"Renamed"}}`), `"slug":"renamed"`, `"authorizedScopes":["TEAM_SCOPE_MANAGE"]`)
		l.refused(t, mia, http.MethodDelete, l.at("teams", below), "", 400, "teams below it", fmt.Sprint(sub))
		l.refused(t, mia, http.MethodDelete, l.at("teams", sub), "", 403, "has projects")
		l.do(t, mia, http.MethodPatch, l.at("teams", sub), `{"team":{"repositories":[{"repositoryId":#acme/web,"action":"UPDATE_ACTION_REMOVE"}]}}`)
		l.do(t, mia, http.MethodDelete, l.at("teams", sub), "")

		// Other teams are not found.
		l.refused(t, mia, http.MethodGet, l.at("teams", foreign), "", 404, fmt.Sprintf("team %d not found", foreign))
		l.refused(t, mia, http.MethodPatch, l.at("teams", foreign), `{"team":{"name":"A"}}`, 404)
		l.refused(t, mia, http.MethodDelete, l.at("teams", foreign), "", 404)
		l.refused(t, mia, http.MethodPost, l.at("teams"), fmt.Sprintf(`{"team":{"name":"N","parentTeamId":%d}}`, foreign), 400, "must be the id of a team")

		// Members who are not managers can only read, and users with the read-only role cannot manage.
		for _, team := range []int64{own, foreign} {
			l.refused(t, max, http.MethodPatch, l.at("teams", team), `{"team":{"users":[]}}`, 403, "may change it")
			l.refused(t, max, http.MethodPost, l.at("teams"), fmt.Sprintf(`{"team":{"name":"N","parentTeamId":%d}}`, team), 403, "may create a team below it")
			l.refused(t, max, http.MethodDelete, l.at("teams", team), "", 403)
		}
		l.refused(t, roy, http.MethodPatch, l.at("teams", own), `{"team":{"users":[]}}`, 403, "ORG_ROLE_READONLY")
		has(t, l.do(t, roy, http.MethodGet, l.at("teams", own), ""), `"authorizedScopes":["TEAM_SCOPE_DIRECT_MEMBER"]`)
		has(t, l.do(t, mia, http.MethodGet, l.at("teams", own), ""), `"authorizedScopes":["TEAM_SCOPE_DIRECT_MEMBER","TEAM_SCOPE_MANAGE"]`)
		has(t, l.do(t, s.Token, http.MethodGet, l.at("teams", own), ""), `"authorizedScopes":["TEAM_SCOPE_MANAGE"]`)

		// A manager cannot add a project to the own team that they can only read elsewhere: they would gain triage rights.
		watchers := l.team(t, s.Token, `"name":"Watchers","repositoryIds":[#acme/ops],"users":[{"userId":"@mia","role":"TEAM_ROLE_READONLY"}]`)
		l.refused(t, mia, http.MethodPatch, l.at("teams", own), `{"team":{"repositories":[{"repositoryId":#acme/ops,"action":"UPDATE_ACTION_ADD"}]}}`, 400, "got #acme/ops")
		l.do(t, s.Token, http.MethodDelete, l.at("teams", watchers), "")

		// A manager may leave the team: the answer is the last that they see of it.
		has(t, l.do(t, mia, http.MethodPatch, l.at("teams", own), `{"team":{"users":[{"userId":"@mia","action":"UPDATE_ACTION_REMOVE"}]}}`), `"authorizedScopes":[]`)
		l.refused(t, mia, http.MethodGet, l.at("teams", own), "", 404)
		if got := l.do(t, mia, http.MethodPost, l.at("teams", "list"), "{}"); got != `{"teams":[],"cursor":""}` {
			t.Errorf("after giving up: %s", got)
		}
	})
}

// TestTeamsOfTokens: a token has its creator's memberships, and the lesser of its own role and its creator's.
func TestTeamsOfTokens(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newTeamFixture(t, s, teamUsers, "acme/web", "acme/api")
		token := func(name string, role access.Role) string {
			return s.AddToken(t, s.Tenant, access.TokenSpec{UserID: l.users[name], Role: role})
		}
		team := l.team(t, s.Token, `"name":"Top","repositoryIds":[#acme/web],"users":[{"userId":"@mia","role":"TEAM_ROLE_MANAGER"}]`)
		for _, c := range []struct {
			token    string
			projects int
		}{
			{token("mia", access.RoleAdmin), 1}, {token("mia", access.RoleMember), 1}, {token("mia", access.RoleReadOnly), 1},
			{token("max", access.RoleMember), 0}, {token("ada", access.RoleMember), 0}, {token("ada", access.RoleAdmin), 2},
		} {
			if got := l.do(t, c.token, http.MethodGet, "/api/v1/deployments/acme/projects", ""); strings.Count(got, `"name"`) != c.projects {
				t.Errorf("%s, want %d projects", got, c.projects)
			}
		}
		change := `{"team":{"users":[{"userId":"@max","action":"UPDATE_ACTION_ADD"}]}}`
		l.do(t, token("mia", access.RoleMember), http.MethodPatch, l.at("teams", team), change)
		l.refused(t, token("mia", access.RoleReadOnly), http.MethodPatch, l.at("teams", team), change, 403)
		l.refused(t, token("max", access.RoleMember), http.MethodPatch, l.at("teams", team), change, 403)
	})
}
