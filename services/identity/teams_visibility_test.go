package identity_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

func init() { // fewer than rapid's hundred examples: each makes a hundred calls on two databases
	if err := flag.Set("rapid.checks", "10"); err != nil {
		panic(err)
	}
}

// owned are the ids of a project's objects.
type owned struct{ code, secrets, scans []int64 }

// visibilityFixture is a deployment with findings on two refs, secrets and scans in each project.
type visibilityFixture struct {
	*teamFixture
	of map[string]owned // by project
}

func newVisibleLand(t *testing.T, s *apitest.Server, projects ...string) *visibilityFixture {
	t.Helper()
	l := &visibilityFixture{teamFixture: newTeamFixture(t, s, teamUsers, projects...), of: map[string]owned{}}
	ctx := s.System(t)
	for name, id := range l.projects {
		s.Upload(t, name, "dev", []byte(teamReport))
		s.Upload(t, name, "main", []byte(leakReport))
		l.of[name] = owned{
			code:    s.Store.Reader.Finding.Query().Where(finding.ProjectID(id), finding.IssueType("sast")).IDsX(ctx),
			secrets: s.Store.Reader.Finding.Query().Where(finding.ProjectID(id), finding.IssueType("secrets")).IDsX(ctx),
			scans:   s.Store.Reader.Scan.Query().Where(scan.ProjectID(id)).IDsX(ctx),
		}
	}
	return l
}

// projectIDs returns the ids of all projects, joined.
func (l *visibilityFixture) projectIDs() string {
	var ids []string
	for _, id := range l.projects {
		ids = append(ids, fmt.Sprint(id))
	}
	return strings.Join(ids, ",")
}

// ids reads a list and returns the sorted ids of its elements.
func (l *visibilityFixture) ids(t testing.TB, token, method, path, body, list string) []int64 {
	t.Helper()
	var page map[string]json.RawMessage
	var rows []struct {
		ID json.RawMessage `json:"id"`
	}
	answer := l.do(t, token, method, path, body)
	if err := json.Unmarshal([]byte(answer), &page); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(page[list], &rows); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	ids := []int64{}
	for _, row := range rows {
		id, err := strconv.ParseInt(strings.Trim(string(row.ID), `"`), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// requireSees requires that lists and lookups return exactly the objects of the visible projects.
func (l *visibilityFixture) requireSees(t testing.TB, who, token string, visible []string) {
	t.Helper()
	var projects, code, secrets, scans []int64
	for _, name := range visible {
		projects = append(projects, l.projects[name])
		code, secrets, scans = append(code, l.of[name].code...), append(secrets, l.of[name].secrets...), append(scans, l.of[name].scans...)
	}
	base := "/api/v1/deployments/acme"
	byID := fmt.Sprintf("/api/v1/deployments/%d", l.DeploymentID)
	for _, c := range []struct {
		method, path, body, list string
		want                     []int64
	}{
		{http.MethodGet, base + "/projects", "", "projects", projects},
		{http.MethodGet, base + "/findings", "", "findings", code},
		{http.MethodGet, base + "/findings?repository_ids=" + l.projectIDs(), "", "findings", code},
		{http.MethodGet, base + "/findings?ref=_default&dedup=true&repos=" + strings.Join(slices.Sorted(maps.Keys(l.projects)), ","), "", "findings", nil},
		{http.MethodGet, byID + "/secrets", "", "findings", secrets},
		{http.MethodPost, byID + "/scans/search", "{}", "scans", scans},
	} {
		slices.Sort(c.want)
		got := l.ids(t, token, c.method, c.path, c.body, c.list)
		if strings.Contains(c.path, "_default") { // one ref per project
			if len(got) != len(visible) {
				t.Errorf("%s: %s: %v, want one of each of %v", who, c.path, got, visible)
			}
			continue
		}
		if !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%s: %s: %v, want %v", who, c.path, got, c.want)
		}
	}
	for name := range l.projects {
		want := http.StatusNotFound
		if slices.Contains(visible, name) {
			want = http.StatusOK
		}
		for _, path := range []string{base + "/projects/" + name, fmt.Sprintf("%s/scan/%d", byID, l.of[name].scans[0])} {
			if status, body := l.try(t, token, http.MethodGet, path, ""); status != want {
				t.Errorf("%s: %s: %d %s, want %d", who, path, status, body, want)
			}
		}
	}
}

// requireTriages triages all findings of all projects, by id and by filter, and requires that exactly the findings of
// the may projects change.
func (l *visibilityFixture) requireTriages(t testing.TB, who, token, note string, may []string) {
	t.Helper()
	var all, want []int64
	for name := range l.projects {
		all = append(all, l.of[name].code...)
	}
	for _, name := range may {
		want = append(want, l.of[name].code...)
	}
	slices.Sort(want)
	list, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, chosen := range []string{`"issue_ids":` + string(list), `"ref":"main"`} { // the second also changes the other ref
		var answer struct {
			Issues []int64 `json:"triaged_issues"`
		}
		note += "."
		body := l.do(t, token, http.MethodPost, "/api/v1/deployments/acme/triage",
			`{"issue_type":"sast","new_triage_state":"reviewing","new_note":"`+note+`",`+chosen+`}`)
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatal(err)
		}
		changed := l.Store.Reader.Finding.Query().Where(finding.TriageComment(note)).IDsX(l.System(t))
		recorded := l.Store.Reader.FindingEvent.Query().Where(findingevent.Note(note)).Select(findingevent.FieldFindingID).IntsX(l.System(t))
		slices.Sort(changed)
		if len(want) != len(recorded) || !slices.Equal(answer.Issues, want) && len(want) > 0 || !slices.Equal(changed, want) && len(want) > 0 {
			t.Errorf("%s: %s: triaged %v, changed %v, recorded %v, want %v", who, chosen, answer.Issues, changed, recorded, want)
		}
	}
}

// modelTeam is a team of the model.
type modelTeam struct {
	parent   int // index; -1 for none
	level    int
	roles    map[string]string // by user
	projects []string
}

// drawTeams generates a tree of teams.
func drawTeams(t *rapid.T, users, projects []string) []modelTeam {
	teams := make([]modelTeam, rapid.IntRange(1, 7).Draw(t, "teams"))
	for i := range teams {
		m := modelTeam{parent: rapid.IntRange(-1, i-1).Draw(t, "parent"), level: 1, roles: map[string]string{}}
		if m.parent >= 0 {
			if m.level = teams[m.parent].level + 1; m.level > 3 {
				m.parent, m.level = -1, 1
			}
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(users), 0, 2, rapid.ID[string]).Draw(t, "members") {
			m.roles[name] = rapid.SampledFrom([]string{"", "MEMBER", "MANAGER", "READONLY"}).Draw(t, "role")
		}
		m.projects = rapid.SliceOfNDistinct(rapid.SampledFrom(projects), 0, 2, rapid.ID[string]).Draw(t, "projects")
		teams[i] = m
	}
	return teams
}

// modelSees returns the projects that a user sees or triages: the projects of each team where the user has a sufficient
// role in the team or in one of its parents.
func modelSees(teams []modelTeam, user string, triages bool) []string {
	found := map[string]bool{}
	for i := range teams {
		for at := i; at >= 0; at = teams[at].parent {
			if role, ok := teams[at].roles[user]; ok && (!triages || role != "READONLY") {
				for _, p := range teams[i].projects {
					found[p] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// store creates the teams of the model, and returns a function that deletes them.
func (l *visibilityFixture) store(t testing.TB, teams []modelTeam) (remove func()) {
	t.Helper()
	ids := make([]int64, len(teams))
	for i, m := range teams {
		body := fmt.Sprintf(`"name":"Team %d"`, i)
		if m.parent >= 0 {
			body += fmt.Sprintf(`,"parentTeamId":%d`, ids[m.parent])
		}
		var users, projects []string
		for name, role := range m.roles {
			if role != "" {
				role = `,"role":"TEAM_ROLE_` + role + `"`
			}
			users = append(users, `{"userId":"@`+name+`"`+role+`}`)
		}
		for _, name := range m.projects {
			projects = append(projects, "#"+name)
		}
		ids[i] = l.team(t, l.Token, body+`,"users":[`+strings.Join(users, ",")+`],"repositoryIds":[`+strings.Join(projects, ",")+`]`)
	}
	return func() {
		for _, id := range slices.Backward(ids) { // subteams first
			l.do(t, l.Token, http.MethodDelete, l.at("teams", id), "")
		}
	}
}

// Each user's visible and triageable findings equal a naive model, for random trees of teams, on both databases.
func TestTeamVisibilityEqualsModel(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		projects := []string{"acme/p0", "acme/p1", "acme/p2", "acme/p3"}
		l := newVisibleLand(t, s, projects...)
		limited := []string{"max", "mia", "roy", "ida"}
		round, hidden := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			round++
			teams := drawTeams(rt, limited, projects)
			remove := l.store(t, teams)
			defer remove()
			for _, name := range limited {
				visible := modelSees(teams, name, false)
				hidden += len(projects) - len(visible)
				l.requireSees(t, name, l.tokens[name], visible)
				if name != "roy" { // users with the read-only role triage nowhere
					l.requireTriages(t, name, l.tokens[name], fmt.Sprintf("%s %d", name, round), modelSees(teams, name, true))
				}
			}
			l.requireSees(t, "ada", l.tokens["ada"], projects)
			if t.Failed() {
				rt.Fatalf("teams: %+v", teams)
			}
		})
		if hidden == 0 {
			t.Error("nothing was ever hidden")
		}
		// Without teams, all users see everything.
		for name, token := range l.tokens {
			l.requireSees(t, name, token, projects)
		}
	})
}

// A change of a team takes effect at the next call, regardless of caches.
func TestTeamChangesHoldAtOnce(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newVisibleLand(t, s, "acme/p0", "acme/p1")
		mia := l.tokens["mia"]
		l.requireSees(t, "mia", mia, []string{"acme/p0", "acme/p1"})
		other := l.team(t, s.Token, `"name":"Other"`)
		l.requireSees(t, "mia, as soon as there is a team", mia, nil)
		change := func(team int64, body string) {
			t.Helper()
			l.do(t, s.Token, http.MethodPatch, l.at("teams", team), `{"team":{`+body+`}}`)
		}
		top := l.team(t, s.Token, `"name":"Top","repositoryIds":[#acme/p0],"users":[{"userId":"@mia"}]`)
		below := l.team(t, s.Token, fmt.Sprintf(`"name":"Below","parentTeamId":%d,"repositoryIds":[#acme/p1]`, top))
		l.requireSees(t, "mia in the team above", mia, []string{"acme/p0", "acme/p1"})
		change(top, `"users":[{"userId":"@mia","action":"UPDATE_ACTION_REMOVE"}]`)
		l.requireSees(t, "mia removed", mia, nil)
		change(below, `"users":[{"userId":"@mia","action":"UPDATE_ACTION_ADD","role":"TEAM_ROLE_READONLY"}]`)
		l.requireSees(t, "mia in the team below", mia, []string{"acme/p1"})
		l.requireTriages(t, "mia, read-only in the team", mia, "a", nil)
		change(below, `"users":[{"userId":"@mia","action":"UPDATE_ACTION_UPDATE","role":"TEAM_ROLE_MEMBER"}]`)
		l.requireTriages(t, "mia, member of the team", mia, "b", []string{"acme/p1"})
		change(below, `"repositories":[{"repositoryId":#acme/p1,"action":"UPDATE_ACTION_REMOVE"}]`)
		l.requireSees(t, "mia, without the project", mia, nil)
		for _, id := range []int64{below, top, other} {
			l.do(t, s.Token, http.MethodDelete, l.at("teams", id), "")
		}
		l.requireSees(t, "mia, without any team", mia, []string{"acme/p0", "acme/p1"})
	})
}

// Hidden objects look like missing ones. Uploads still work, and a deleted project is removed from its teams.
func TestHiddenLooksAbsent(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newVisibleLand(t, s, "acme/p0", "acme/p1")
		mia := l.tokens["mia"]
		l.team(t, s.Token, `"name":"Top","repositoryIds":[#acme/p0],"users":[{"userId":"@mia"}]`)
		byID := fmt.Sprintf("/api/v1/deployments/%d", l.DeploymentID)
		hiddenScan := l.of["acme/p1"].scans[0]
		for _, c := range [][2]string{
			{"/api/v1/deployments/acme/projects/acme/p1", "/api/v1/deployments/acme/projects/acme/no"},
			{fmt.Sprintf("%s/scan/%d", byID, hiddenScan), byID + "/scan/99999"},
		} {
			hidden, absent := second(l.try(t, mia, http.MethodGet, c[0], "")), second(l.try(t, mia, http.MethodGet, c[1], ""))
			if strings.NewReplacer("acme/p1", "X", fmt.Sprint(hiddenScan), "Y").Replace(hidden) != strings.NewReplacer("acme/no", "X", "99999", "Y").Replace(absent) {
				t.Errorf("hidden: %s\nabsent: %s", hidden, absent)
			}
		}
		for _, query := range []string{"repos=acme/p1", fmt.Sprintf("repository_ids=%d", l.projects["acme/p1"])} {
			if got := l.do(t, mia, http.MethodGet, "/api/v1/deployments/acme/findings?"+query, ""); got != `{"findings":[]}` {
				t.Errorf("%s: %s", query, got)
			}
		}
		client := findingsv1.NewFindingsServiceClient(s.Conn)
		response, err := client.ListFindings(s.Context(t, mia), &findingsv1.ListFindingsRequest{DeploymentSlug: "acme"})
		if err != nil || len(response.GetFindings()) != len(l.of["acme/p0"].code) {
			t.Errorf("over gRPC: %v %v", response, err)
		}
		// A member cannot use an administrator's cursors to learn anything.
		admin := l.tokens["ada"]
		l.do(t, admin, http.MethodGet, "/api/v1/deployments/acme/findings?page_size=100&page=0", "")
		if got := l.do(t, mia, http.MethodGet, "/api/v1/deployments/acme/findings?page_size=100&page=1", ""); got != `{"findings":[]}` {
			t.Errorf("page 1: %s", got)
		}
		path := "/api/v1/deployments/acme/reports?" + url.Values{"project": {"acme/p1"}, "ref": {"main"}}.Encode()
		if answer := s.Do(t, mia, http.MethodPost, path, teamReport); answer.Status != http.StatusForbidden || strings.Contains(answer.Body, "p0") {
			t.Errorf("upload: %d %s", answer.Status, answer.Body)
		}
		l.do(t, s.Token, http.MethodDelete, "/api/v1/deployments/acme/projects/acme/p0", "")
		if got := l.rows(t); got != "1 1 0" {
			t.Errorf("after deleting the project: %s teams, members, projects", got)
		}
		if s.Store.Reader.Project.Query().Where(project.Name("acme/p1")).CountX(s.System(t)) != 1 {
			t.Error("the other project is gone")
		}
	})
}
