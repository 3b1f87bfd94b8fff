package identity_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// teamFixture is a deployment with users and projects for teams.
type teamFixture struct {
	requester
	users    map[string]int64  // ids by first name
	tokens   map[string]string // JSON Web Tokens by first name
	projects map[string]int64  // ids by name
}

// teamReport is one result of a code scanner, leakReport one of a secrets scanner.
const (
	teamReport = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec","version":"2.21"}},"results":[
		{"ruleId":"G104","message":{"text":"Errors unhandled"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":3,"snippet":{"text":"f()"}}}}]}]}]}`
	leakReport = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gitleaks","version":"8.18"}},"results":[
		{"ruleId":"generic-api-key","message":{"text":"Key"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"b.env"},"region":{"startLine":1,"snippet":{"text":"KEY=zzz"}}}}]}]}]}`
)

// newTeamFixture adds users by first name, and uploads a report to each project.
func newTeamFixture(t *testing.T, s *apitest.Server, users map[string]access.Role, projects ...string) *teamFixture {
	t.Helper()
	l := &teamFixture{requester: requester{s}, users: map[string]int64{}, tokens: map[string]string{}, projects: map[string]int64{}}
	for name, role := range users {
		l.tokens[name] = s.AddUser(t, s.Tenant, name+"@acme.test", role)
		l.users[name] = s.Store.Reader.User.Query().Where(user.Email(name + "@acme.test")).OnlyIDX(s.System(t))
	}
	for _, name := range projects {
		s.Upload(t, name, "main", []byte(teamReport))
		l.projects[name] = s.Store.Reader.Project.Query().Where(project.Name(name)).OnlyIDX(s.System(t))
	}
	return l
}

// at is a path below the teams of the deployment.
func (l *teamFixture) at(parts ...any) string {
	path := fmt.Sprintf("/api/permissions/v2/deployments/%d", l.DeploymentID)
	for _, part := range parts {
		path += fmt.Sprint("/", part)
	}
	return path
}

// words replaces @name by a user's id and #name by a project's id, for readable bodies.
func (l *teamFixture) words(body string) string {
	return regexp.MustCompile(`[@#][a-z0-9/]+`).ReplaceAllStringFunc(body, func(word string) string {
		id, ok := l.users[word[1:]]
		if word[0] == '#' {
			id, ok = l.projects[word[1:]]
		}
		if !ok {
			panic("nothing is called " + word)
		}
		return strconv.FormatInt(id, 10)
	})
}

// try sends a request and returns the status and the body without the request id.
func (l *teamFixture) try(t testing.TB, token, method, path, body string) (int, string) {
	t.Helper()
	answer := l.Do(t, token, method, path, l.words(body))
	return answer.Status, changing.ReplaceAllString(answer.Body, `"$1":"R"`)
}

// do is try that requires 200.
func (l *teamFixture) do(t testing.TB, token, method, path, body string) string {
	t.Helper()
	status, answer := l.try(t, token, method, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s %s: %d %s", method, path, body, status, answer)
	}
	return answer
}

// refused requires a status and words in the error.
func (l *teamFixture) refused(t testing.TB, token, method, path, body string, want int, words ...string) {
	t.Helper()
	status, answer := l.try(t, token, method, path, body)
	var parsed struct{ Error string }
	if err := json.Unmarshal([]byte(answer), &parsed); err != nil || status != want {
		t.Errorf("%s %s %s: %d %s, want %d", method, path, body, status, answer, want)
	}
	for _, word := range words {
		if !strings.Contains(parsed.Error, l.words(word)) {
			t.Errorf("%s %s %s: %q does not say %q", method, path, body, parsed.Error, l.words(word))
		}
	}
}

// team creates a team from JSON without braces, and returns its id.
func (l *teamFixture) team(t testing.TB, token, body string) int64 {
	t.Helper()
	var created struct{ Team struct{ ID json.Number } }
	answer := l.do(t, token, http.MethodPost, l.at("teams"), `{"team":{`+body+`}}`)
	if err := json.Unmarshal([]byte(answer), &created); err != nil {
		t.Fatal(err)
	}
	id, err := created.Team.ID.Int64()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// rows returns the number of stored rows of teams.
func (l *teamFixture) rows(t testing.TB) string {
	t.Helper()
	db, ctx := l.Store.Reader, l.System(t)
	return fmt.Sprint(db.Team.Query().CountX(ctx), " ", db.TeamMember.Query().CountX(ctx), " ", db.TeamProject.Query().CountX(ctx))
}
