package identity_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/services/internal/apitest"
)

// The audit trail records added, removed and changed members in each change of a team.
func TestTeamAudit(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := newTeamFixture(t, s, teamUsers, "acme/web")
		id := l.team(t, s.Token, `"name":"Top","users":[{"userId":"@max"}]`)
		l.do(t, s.Token, http.MethodPatch, l.at("teams", id), `{"team":{"name":"Shop","repositories":[{"repositoryId":"#acme/web","action":"UPDATE_ACTION_ADD"}],
			"users":[{"userId":"@max","action":"UPDATE_ACTION_REMOVE"},{"userId":"@mia","action":"UPDATE_ACTION_ADD","role":"TEAM_ROLE_MANAGER"}]}}`)
		l.refused(t, l.tokens["max"], http.MethodDelete, l.at("teams", id), "", 404)
		l.do(t, s.Token, http.MethodDelete, l.at("teams", id), "")
		var trail []string
		for _, entry := range s.Store.Reader.AuditEntry.Query().Where(auditentry.MethodContains("TeamsService")).Order(ent.Asc(auditentry.FieldID)).AllX(s.System(t)) {
			changes, err := json.Marshal(entry.Changes)
			if err != nil {
				t.Fatal(err)
			}
			trail = append(trail, entry.Method[strings.LastIndex(entry.Method, "/")+1:]+" "+entry.Code+" "+string(changes))
		}
		if len(trail) != 4 {
			t.Fatalf("%d entries: %s", len(trail), strings.Join(trail, "\n"))
		}
		has(t, trail[0], "CreateDeploymentTeam OK", `"team_members"`, l.words(`@max`), `"team"`, "Top")
		has(t, trail[1], "UpdateDeploymentTeam OK", `"team_repositories"`, `"team_members"`, "TEAM_ROLE_MANAGER", "Shop")
		has(t, trail[2], "DeleteDeploymentTeam NotFound")
		has(t, trail[3], "DeleteDeploymentTeam OK", `"team"`, fmt.Sprint(id), "Shop")
	})
}
