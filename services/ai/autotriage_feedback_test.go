package ai_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/aifeedback"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func TestAutotriageFeedback(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("false_positive"), nil, func(t *testing.T, s *modelled) {
		id := s.seed(t, fact{})
		s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK)
		verdict := s.analysis(t, id).ID
		path := fmt.Sprintf("/api/ai/deployments/%d/autotriage_feedback", s.DeploymentID)
		body := fmt.Sprintf(`{"deploymentId":"%d","feedback":{"autotriageId":"%d","rating":"RATING_GOOD","note":"checked"}}`, s.DeploymentID, verdict)
		member := s.AddUser(t, s.Tenant, "mia@acme.test", access.RoleMember)
		other := s.AddUser(t, s.Tenant, "noa@acme.test", access.RoleMember)
		post := func(token, body string, want int) string {
			t.Helper()
			answer := s.Do(t, token, http.MethodPost, path, body)
			if answer.Status != want {
				t.Fatalf("%s: %d %s, want %d", body, answer.Status, answer.Body, want)
			}
			return answer.Body
		}
		apitest.Golden(t, "autotriage_feedback", post(member, body, http.StatusOK))
		post(other, strings.Replace(body, "GOOD", "BAD", 1), http.StatusOK)
		post(member, strings.Replace(body, "checked", "", 1), http.StatusOK)
		rows := s.Store.Reader.AiFeedback.Query().Order(aifeedback.ByID()).AllX(s.System(t))
		if len(rows) != 2 || rows[0].Rating != "RATING_GOOD" || rows[0].Note != "" || rows[1].Rating != "RATING_BAD" || rows[1].Note != "checked" {
			t.Errorf("%v", rows)
		}
		for bad, want := range map[string]int{
			`{}`: 400, `{"feedback":{"autotriageId":"1"}}`: 400, `{"feedback":{"autotriageId":"1","rating":"RATING_UGLY"}}`: 400,
			`{"feedback":{"autotriageId":"0","rating":"RATING_GOOD"}}`:                                            400,
			`{"feedback":{"autotriageId":"999","rating":"RATING_GOOD"}}`:                                          404,
			`{"feedback":{"autotriageId":"1","rating":"RATING_GOOD","note":"` + strings.Repeat("x", 3001) + `"}}`: 400,
		} {
			post(member, bad, want)
		}
		post(s.Token, body, http.StatusForbidden)
		globex := s.AddTenant(t, "globex")
		stranger := s.AddUser(t, globex, "eve@globex.test", access.RoleAdmin)
		post(stranger, body, http.StatusNotFound)
		foreign := s.Do(t, stranger, http.MethodPost, fmt.Sprintf("/api/ai/deployments/%d/autotriage_feedback", globex.DeploymentID),
			strings.Replace(body, fmt.Sprintf(`"%d","feedback"`, s.DeploymentID), fmt.Sprintf(`"%d","feedback"`, globex.DeploymentID), 1))
		if foreign.Status != http.StatusNotFound {
			t.Errorf("another tenant's verdict: %d %s", foreign.Status, foreign.Body)
		}
	})
}
