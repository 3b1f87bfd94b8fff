package identity_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent/user"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

var teamUsers = map[string]access.Role{
	"ada": access.RoleAdmin, "max": access.RoleMember, "mia": access.RoleMember, "roy": access.RoleReadOnly, "ida": access.RoleImpersonator,
}

func TestTeamsGolden(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newTeamFixture(t, s, nil, "acme/api", "acme/web")
		for _, name := range []string{"max", "mia"} { // in this order: bodies contain ids
			l.tokens[name] = s.AddUser(t, s.Tenant, name+"@acme.test", access.RoleMember)
			l.users[name] = 2 + int64(len(l.users))
		}
		client, ctx := identityv1.NewTeamsServiceClient(s.Conn), s.Context(t, s.Token)
		same := func(body string) func(proto.Message, error) {
			return func(response proto.Message, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				apitest.Same(t, response, body)
			}
		}
		get := func(parts ...any) string { return l.do(t, s.Token, http.MethodGet, l.at(parts...), "") }
		golden(t, "teams_status_off", get("status"))
		created := l.do(t, s.Token, http.MethodPost, l.at("teams"),
			`{"team":{"name":"Müller & Söhne: Zahlungen","repositoryIds":["#acme/api","#acme/api"],"users":[{"userId":"@max"},{"userId":"@mia","role":"TEAM_ROLE_MANAGER"}]}}`)
		golden(t, "teams_create", created)
		l.team(t, s.Token, `"name":"Cards","parentTeamId":1,"repositoryIds":[#acme/web]`)
		status := get("status")
		golden(t, "teams_status", status)
		same(status)(client.CheckRbacStatus(ctx, &identityv1.CheckRbacStatusRequest{DeploymentId: s.DeploymentID}))
		updated := l.do(t, s.Token, http.MethodPatch, l.at("teams", 1), `{"team":{"name":"Payments",
			"repositories":[{"repositoryId":"#acme/web","action":"UPDATE_ACTION_ADD"},{"repositoryId":"#acme/api","action":"UPDATE_ACTION_REMOVE"}],
			"users":[{"userId":"@max","action":"UPDATE_ACTION_UPDATE","role":"TEAM_ROLE_READONLY"}]}}`)
		golden(t, "teams_update", updated)
		for name, parts := range map[string][]any{"get": {1}, "children": {1, "teams"}, "repos": {1, "repos"}, "members": {1, "members"}} {
			golden(t, "teams_"+name, get(append([]any{"teams"}, parts...)...))
		}
		same(get("teams", 1))(client.GetDeploymentTeam(ctx, &identityv1.GetDeploymentTeamRequest{DeploymentId: s.DeploymentID, TeamId: 1}))
		same(get("teams", 1, "teams"))(client.ListTeamChildTeams(ctx, &identityv1.ListTeamChildTeamsRequest{DeploymentId: s.DeploymentID, TeamId: 1}))
		same(get("teams", 1, "repos"))(client.ListTeamRepos(ctx, &identityv1.ListTeamReposRequest{DeploymentId: s.DeploymentID, TeamId: 1}))
		same(get("teams", 1, "members"))(client.ListTeamUsers(ctx, &identityv1.ListTeamUsersRequest{DeploymentId: s.DeploymentID, TeamId: 1}))
		list := l.do(t, s.Token, http.MethodPost, l.at("teams", "list"), "{}")
		golden(t, "teams_list", list)
		same(list)(client.ListDeploymentTeams(ctx, &identityv1.ListDeploymentTeamsRequest{DeploymentId: s.DeploymentID}))
		for project, want := range map[string]int{"#acme/web": 2, "#acme/api": 0, "0": 2} {
			found := l.do(t, s.Token, http.MethodPost, l.at("teams", "list"), `{"filter":{"repositoryId":`+project+`}}`)
			if strings.Count(found, `"slug"`) != want {
				t.Errorf("teams of %s: %s, want %d", project, found, want)
			}
		}
		golden(t, "teams_of_manager", l.do(t, l.tokens["mia"], http.MethodPost, l.at("teams", "list"), "{}"))
		golden(t, "teams_delete_refused", second(l.try(t, s.Token, http.MethodDelete, l.at("teams", 1), "")))
		golden(t, "teams_delete", l.do(t, s.Token, http.MethodDelete, l.at("teams", 2), ""))
		golden(t, "teams_not_found", second(l.try(t, s.Token, http.MethodGet, l.at("teams", 2), "")))
		if _, err := client.DeleteDeploymentTeam(ctx, &identityv1.DeleteDeploymentTeamRequest{DeploymentId: s.DeploymentID, TeamId: 1}); err != nil {
			t.Fatal(err)
		}
		if got := l.rows(t); got != "0 0 0" {
			t.Errorf("after deleting all: %s teams, members and projects", got)
		}
	})
}

func second(_ int, body string) string { return body }

func TestTeamNamesAndSlugs(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newTeamFixture(t, s, nil)
		slugs := map[string]int64{}
		for _, step := range []struct{ name, slug string }{
			{"Web", "web"}, {"web", "web-2"}, {"WEB!", "web-3"}, {"web 2", "web-2-2"}, {"日本", "ri-ben"}, {"✨", "team"}, {"🚀", "team-2"},
			{strings.Repeat("ö", 255), strings.Repeat("o", 100)}, {strings.Repeat("ö", 254), strings.Repeat("o", 100) + "-2"}, {" x ", "x"},
		} {
			id := l.team(t, s.Token, fmt.Sprintf(`"name":%q`, step.name))
			slugs[step.slug] = id
			if got := l.do(t, s.Token, http.MethodGet, l.at("teams", id), ""); !strings.Contains(got, fmt.Sprintf(`"name":%q,"slug":%q`, step.name, step.slug)) {
				t.Errorf("%q: %s, want the slug %s", step.name, got, step.slug)
			}
		}
		rename := func(slug, name string) string {
			return second(l.try(t, s.Token, http.MethodPatch, l.at("teams", slugs[slug]), fmt.Sprintf(`{"team":{"name":%q}}`, name)))
		}
		has(t, rename("web", "Shop"), `"slug":"shop"`)
		has(t, rename("web", "Shop"), `"slug":"shop"`)
		has(t, rename("web-2", "Web"), `"slug":"web"`)
		has(t, rename("web-3", "Shop"), `ALREADY_EXISTS`, `a team named \"Shop\" exists`)
		list := l.do(t, s.Token, http.MethodPost, l.at("teams", "list"), `{"filter":{"name":"Web"}}`)
		if strings.Count(list, `"name"`) != 1 || !strings.Contains(list, `"name":"Web"`) {
			t.Errorf("the filter is not exact: %s", list)
		}
	})
}

func TestTeamsInvalid(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newTeamFixture(t, s, teamUsers, "acme/web")
		other := s.AddTenant(t, "rival")
		top := l.team(t, s.Token, `"name":"Top","users":[{"userId":"@max"}],"repositoryIds":[#acme/web]`)
		middle := l.team(t, s.Token, fmt.Sprintf(`"name":"Middle","parentTeamId":%d`, top))
		bottom := l.team(t, s.Token, fmt.Sprintf(`"name":"Bottom","parentTeamId":"%d"`, middle))
		s.AddUser(t, other, "eve@rival.test", access.RoleMember)
		eve := s.Store.Reader.User.Query().Where(user.Email("eve@rival.test")).OnlyIDX(s.System(t))
		before := l.rows(t)
		many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
		for _, c := range []struct {
			body  string
			words []string
		}{
			{`{}`, []string{"team is required"}},
			{`{"team":{}}`, []string{"team.name must not be empty"}},
			{`{"team":{"name":"` + strings.Repeat("ü", 256) + `"}}`, []string{"team.name", "255"}},
			{`{"team":{"name":"  "}}`, []string{"team.name must have a visible character"}},
			{`{"team":{"name":"a\u0007b"}}`, []string{"no control characters"}},
			{`{"team":{"name":"N","repositoryIds":[` + many(501, "1") + `]}}`, []string{"team.repositoryIds", "500"}},
			{`{"team":{"name":"N","users":[` + many(501, `{"userId":1}`) + `]}}`, []string{"team.users", "500"}},
			{`{"team":{"name":"N","users":[{"userId":"@max","role":"BOSS"}]}}`, []string{"role", "TEAM_ROLE_MEMBER"}},
			{`{"team":{"name":"N","users":[{"userId":"@max"},{"userId":"@max","role":"TEAM_ROLE_MANAGER"}]}}`, []string{"one role", "@max"}},
			{fmt.Sprintf(`{"team":{"name":"N","repositoryIds":[#acme/web,"98","99"],"users":[{"userId":"97"},{"userId":%d},{"userId":"@max"}]}}`, eve),
				[]string{"team.repositoryIds must name projects of the deployment, got 98, 99", fmt.Sprintf("team.users must name users of the deployment, got %d, 97", eve)}},
			{`{"team":{"name":"N","parentTeamId":"4711"}}`, []string{"team.parentTeamId must be the id of a team, got 4711"}},
			{`{"team":{"name":"N","parentTeamId":"x"}}`, []string{"team.parentTeamId"}},
			{fmt.Sprintf(`{"team":{"name":"N","parentTeamId":%d}}`, bottom), []string{"team.parentTeamId", "level 3", fmt.Sprint(bottom)}},
		} {
			l.refused(t, s.Token, http.MethodPost, l.at("teams"), c.body, 400, c.words...)
		}
		l.refused(t, s.Token, http.MethodPost, l.at("teams"), `{"team":{"name":"Top"}}`, 409, `a team named "Top" exists`)
		for _, c := range []struct {
			body  string
			words []string
		}{
			{`{}`, []string{"team is required"}},
			{`{"team":{"repositories":[{"repositoryId":#acme/web}]}}`, []string{"team.repositories[0].action", "UPDATE_ACTION_ADD", "UPDATE_ACTION_REMOVE"}},
			{`{"team":{"repositories":[{"repositoryId":#acme/web,"action":"UPDATE_ACTION_UPDATE"}]}}`, []string{"team.repositories[0].action", "got UPDATE_ACTION_UPDATE"}},
			{`{"team":{"repositories":[{"repositoryId":98,"action":"UPDATE_ACTION_REMOVE"}]}}`, []string{"got 98"}},
			{`{"team":{"repositories":[{"repositoryId":#acme/web,"action":"UPDATE_ACTION_REMOVE"},{"repositoryId":#acme/web,"action":"UPDATE_ACTION_ADD"}]}}`, []string{"one action", "#acme/web"}},
			{`{"team":{"repositories":[` + many(501, `{"repositoryId":#acme/web,"action":"UPDATE_ACTION_ADD"}`) + `]}}`, []string{"team.repositories", "500"}},
			{`{"team":{"users":[{"userId":"@max"}]}}`, []string{"team.users[0].action"}},
			{`{"team":{"users":[{"userId":"@max","action":"UPDATE_ACTION_UPDATE"}]}}`, []string{"must have a role", "@max"}},
			{`{"team":{"users":[{"userId":"@mia","action":"UPDATE_ACTION_UPDATE","role":"TEAM_ROLE_MEMBER"}]}}`, []string{"only members of the team", "@mia"}},
			{`{"team":{"users":[{"userId":97,"action":"UPDATE_ACTION_REMOVE"}]}}`, []string{"got 97"}},
			{`{"team":{"name":"New","users":[{"userId":97,"action":"UPDATE_ACTION_ADD"},{"userId":"@mia","action":"UPDATE_ACTION_ADD"}]}}`, []string{"got 97"}},
			{`{"team":{"users":[` + many(501, `{"userId":"@max","action":"UPDATE_ACTION_ADD"}`) + `]}}`, []string{"team.users", "500"}},
		} {
			l.refused(t, s.Token, http.MethodPatch, l.at("teams", top), c.body, 400, c.words...)
		}
		for _, path := range []string{"teams/" + fmt.Sprint(top) + "/repos?limit=-1", "teams/" + fmt.Sprint(top) + "/teams?limit=1001", "teams/" + fmt.Sprint(top) + "/members?limit=x"} {
			l.refused(t, s.Token, http.MethodGet, l.at(path), "", 400, "limit")
		}
		l.refused(t, s.Token, http.MethodGet, l.at("teams", top, "repos?cursor=nonsense"), "", 400, "cursor is not valid")
		l.refused(t, s.Token, http.MethodPost, l.at("teams", "list"), `{"limit":"1001"}`, 400, "limit")
		l.refused(t, s.Token, http.MethodGet, l.at("teams", "x"), "", 404, "teamId")
		l.refused(t, s.Token, http.MethodDelete, l.at("teams", top), "", 400, "teams below it", fmt.Sprint(middle))
		for _, path := range []string{"teams/4711", "teams/4711/repos", "teams/4711/members", "teams/4711/teams", "teams/-1", "teams/0"} {
			l.refused(t, s.Token, http.MethodGet, l.at(path), "", 404, "not found")
		}
		empty := &identityv1.UpdateDeploymentTeamRequest{DeploymentId: s.DeploymentID, TeamId: top, Team: &identityv1.TeamUpdate{Name: new(string)}}
		_, err := identityv1.NewTeamsServiceClient(s.Conn).UpdateDeploymentTeam(s.Context(t, s.Token), empty) // over HTTP "" means absent
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("an empty name over gRPC: %v", err)
		}
		l.refused(t, s.Token, http.MethodPatch, l.at("teams", 4711), `{"team":{"name":"A"}}`, 404, "team 4711 not found")
		l.refused(t, s.Token, http.MethodDelete, l.at("teams", 4711), "", 404, "team 4711 not found")
		if after := l.rows(t); after != before {
			t.Errorf("refused changes were stored: %s, before %s", after, before)
		}
	})
}

func TestTeamChanges(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newTeamFixture(t, s, teamUsers, "acme/web", "acme/api")
		id := l.team(t, s.Token, `"name":"Top"`)
		for _, step := range []struct{ change, members, repos string }{
			{`"users":[{"userId":"@max","action":"UPDATE_ACTION_ADD"},{"userId":"@max","action":"UPDATE_ACTION_ADD"}]`, "@max:MEMBER", ""},
			{`"users":[{"userId":"@max","action":"UPDATE_ACTION_ADD","role":"TEAM_ROLE_MANAGER"}]`, "@max:MANAGER", ""},
			{`"users":[{"userId":"@max","action":"UPDATE_ACTION_ADD"}]`, "@max:MANAGER", ""},
			{`"users":[{"userId":"@max","action":"UPDATE_ACTION_UPDATE","role":"TEAM_ROLE_READONLY"},{"userId":"@mia","action":"UPDATE_ACTION_REMOVE","role":"TEAM_ROLE_MEMBER"}]`, "@max:READONLY", ""},
			{`"users":[{"userId":"@mia","action":"UPDATE_ACTION_ADD"},{"userId":"@max","action":"UPDATE_ACTION_REMOVE"}]`, "@mia:MEMBER", ""},
			{`"repositories":[{"repositoryId":"#acme/web","action":"UPDATE_ACTION_ADD"},{"repositoryId":"#acme/api","action":"UPDATE_ACTION_REMOVE"}]`, "@mia:MEMBER", "#acme/web"},
			{`"repositories":[{"repositoryId":"#acme/web","action":"UPDATE_ACTION_ADD"},{"repositoryId":"#acme/api","action":"UPDATE_ACTION_ADD"}]`, "@mia:MEMBER", "#acme/web,#acme/api"},
			{``, "@mia:MEMBER", "#acme/web,#acme/api"},
			{`"name":""`, "@mia:MEMBER", "#acme/web,#acme/api"},
		} {
			l.do(t, s.Token, http.MethodPatch, l.at("teams", id), `{"team":{`+step.change+`}}`)
			var members struct {
				Users []struct{ UserID, Role string }
			}
			var repos struct{ RepositoryIDs []string }
			for path, into := range map[string]any{"members": &members, "repos": &repos} {
				if err := json.Unmarshal([]byte(l.do(t, s.Token, http.MethodGet, l.at("teams", id, path), "")), into); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, m := range members.Users {
				got = append(got, m.UserID+":"+strings.TrimPrefix(m.Role, "TEAM_ROLE_"))
			}
			if strings.Join(got, ",") != l.words(step.members) || strings.Join(repos.RepositoryIDs, ",") != l.words(step.repos) {
				t.Errorf("after %s: %v %v, want %s %s", step.change, got, repos.RepositoryIDs, step.members, step.repos)
			}
		}
	})
}

func TestTeamPaging(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newTeamFixture(t, s, teamUsers, "a/1", "a/2", "a/3", "a/4", "a/5")
		top := l.team(t, s.Token, `"name":"Top","repositoryIds":[#a/1,#a/2,#a/3,#a/4,#a/5],"users":[{"userId":"@ada"},{"userId":"@max"},{"userId":"@mia"},{"userId":"@roy"},{"userId":"@ida"}]`)
		for i := range 5 {
			l.team(t, s.Token, fmt.Sprintf(`"name":"Below %d","parentTeamId":%d`, i, top))
		}
		walk := func(token, list string, post bool) (ids []string) {
			cursor := ""
			for {
				var page struct {
					ChildTeamIDs, RepositoryIDs []string
					Users                       []struct{ UserID string }
					Teams                       []struct{ ID string }
					Limit, Cursor               string
				}
				method, path, body := http.MethodGet, l.at(list)+"?limit=2&cursor="+cursor, ""
				if post {
					method, path, body = http.MethodPost, l.at(list), `{"limit":"2","cursor":"`+cursor+`"}`
				}
				if err := json.Unmarshal([]byte(l.do(t, token, method, path, body)), &page); err != nil {
					t.Fatal(err)
				}
				ids = slices.Concat(ids, page.ChildTeamIDs, page.RepositoryIDs)
				for _, u := range page.Users {
					ids = append(ids, u.UserID)
				}
				for _, team := range page.Teams {
					ids = append(ids, team.ID)
				}
				if !post && page.Limit != "2" {
					t.Errorf("%s: limit %s", list, page.Limit)
				}
				if cursor = page.Cursor; cursor == "" {
					return ids
				}
			}
		}
		for list, want := range map[string]int{"teams": 5, "repos": 5, "members": 5} {
			got := walk(s.Token, fmt.Sprintf("teams/%d/%s", top, list), false)
			if len(got) != want || len(slices.Compact(slices.Sorted(slices.Values(got)))) != want {
				t.Errorf("%s: %v, want %d", list, got, want)
			}
		}
		for _, token := range []string{s.Token, l.tokens["max"]} {
			if got := walk(token, "teams/list", true); len(got) != 6 {
				t.Errorf("teams: %v, want 6", got)
			}
		}
		// A cursor is bound to its list and to the caller's visibility.
		cursor := strings.Split(strings.SplitAfter(l.do(t, s.Token, http.MethodPost, l.at("teams", "list"), `{"limit":"2"}`), `"cursor":"`)[1], `"`)[0]
		l.refused(t, s.Token, http.MethodPost, l.at("teams", "list"), `{"cursor":"`+cursor+`","filter":{"name":"Top"}}`, 400, "cursor is not valid")
		l.refused(t, s.Token, http.MethodGet, l.at("teams", top, "repos?cursor="+cursor), "", 400, "cursor is not valid")
		l.refused(t, l.tokens["max"], http.MethodPost, l.at("teams", "list"), `{"cursor":"`+cursor+`"}`, 400, "cursor is not valid")
	})
}

// TestTeamsOfOthers: a team of another deployment looks like a missing one.
func TestTeamsOfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newTeamFixture(t, s, teamUsers, "acme/web")
		other := s.AddTenant(t, "rival")
		id := l.team(t, s.Token, `"name":"Top","repositoryIds":[#acme/web],"users":[{"userId":"@max"}]`)
		theirs := &teamFixture{requester: l.requester, users: l.users, projects: l.projects}
		in := func(path string) string {
			return strings.Replace(l.at(path), fmt.Sprint("deployments/", s.DeploymentID), fmt.Sprint("deployments/", other.DeploymentID), 1)
		}
		for _, call := range []struct{ method, path, body string }{
			{http.MethodGet, "teams/%d", ""}, {http.MethodGet, "teams/%d/teams", ""}, {http.MethodGet, "teams/%d/repos", ""},
			{http.MethodGet, "teams/%d/members", ""}, {http.MethodPatch, "teams/%d", `{"team":{"name":"Mine"}}`}, {http.MethodDelete, "teams/%d", ""},
		} {
			status, body := theirs.try(t, other.Token, call.method, in(fmt.Sprintf(call.path, id)), call.body)
			_, absent := theirs.try(t, other.Token, call.method, in(fmt.Sprintf(call.path, 4711)), call.body)
			if status != 404 || strings.ReplaceAll(body, fmt.Sprint("team ", id), "team 4711") != absent {
				t.Errorf("%s %s: %d %s, want %s", call.method, call.path, status, body, absent)
			}
			if status, body := theirs.try(t, other.Token, call.method, l.at(fmt.Sprintf(call.path, id)), call.body); status != 404 || !strings.Contains(body, "deployment not found") {
				t.Errorf("%s %s in the other deployment: %d %s", call.method, call.path, status, body)
			}
		}
		theirs.refused(t, other.Token, http.MethodPost, in("teams"), `{"team":{"name":"Top","parentTeamId":`+fmt.Sprint(id)+`}}`, 400, "team.parentTeamId must be the id of a team")
		theirs.refused(t, other.Token, http.MethodPost, in("teams"), `{"team":{"name":"Top","repositoryIds":[#acme/web],"users":[{"userId":"@max"}]}}`, 400, "got #acme/web", "got @max")
		if body := theirs.do(t, other.Token, http.MethodPost, in("teams/list"), "{}"); body != `{"teams":[],"cursor":""}` {
			t.Errorf("teams of others: %s", body)
		}
		// Names and slugs are unique within a deployment only.
		has(t, theirs.do(t, other.Token, http.MethodPost, in("teams"), `{"team":{"name":"Top"}}`), `"slug":"top"`)
		client := identityv1.NewTeamsServiceClient(s.Conn)
		_, err := client.GetDeploymentTeam(s.Context(t, other.Token), &identityv1.GetDeploymentTeamRequest{DeploymentId: other.DeploymentID, TeamId: id})
		if status.Code(err) != codes.NotFound {
			t.Errorf("over gRPC: %v", err)
		}
	})
}
