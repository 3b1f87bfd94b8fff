package notifications_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestFiltersFollowNames: saved views and scheduled reports name a project, a tag and a team by their new names, and
// keep everything else.
func TestFiltersFollowNames(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.seedNames(t)
		teams := fmt.Sprintf("/api/permissions/v2/deployments/%d/teams", s.DeploymentID)
		s.Body(t, s.Token, http.MethodPost, teams, `{"team":{"name":"Blue"}}`, 200)
		views := fmt.Sprintf("/api/v1/deployments/%d/saved-views", s.DeploymentID)
		s.Body(t, s.Token, http.MethodPost, views, `{"name":"web","scope":"deployment","view":{"filter":{
			"repositoryNames":["ACME/Web","acme/other"],"repositoryTags":["pci"],"teamNames":["Blue"],"severities":["SEVERITY_HIGH"]}}}`, 200)
		s.Body(t, s.Token, http.MethodPost, s.actions(""), `{"notificationRule":{"channel":"webhook","name":"x","config":{"url":"https://hooks.acme.test/","secret":"`+
			hookSecret+`"},"send_report":{"cadence":"REPORT_CADENCE_DAILY","filters":{"projects":["acme/web"],"tags":["pci"],"teams":["Blue"]}}}}`, 200)

		s.Body(t, s.Token, http.MethodPatch, fmt.Sprintf("/api/agent/deployments/%d/repos/acme/web", s.DeploymentID), `{"name":"acme/site"}`, 200)
		s.Body(t, s.Token, http.MethodPut, fmt.Sprintf("/api/agent/deployments/%d/tags/pci", s.DeploymentID), `{"name":"card"}`, 200)
		s.Body(t, s.Token, http.MethodPatch, teams+"/1", `{"team":{"name":"Green"}}`, 200)

		view, report := s.Get(t, views), s.Body(t, s.Token, http.MethodPost, s.actions("/list"), `{}`, 200)
		for _, c := range []struct{ in, want string }{
			{view, `"repositoryNames":["acme/site","acme/other"]`}, {view, `"repositoryTags":["card"]`}, {view, `"teamNames":["Green"]`}, {view, `"SEVERITY_HIGH"`},
			{report, `"projects":["acme/site"]`}, {report, `"tags":["card"]`}, {report, `"teams":["Green"]`},
		} {
			if !strings.Contains(c.in, c.want) {
				t.Errorf("no %s in %s", c.want, c.in)
			}
		}
		if got := s.configError(t); got != "" {
			t.Errorf("config_error is %q", got)
		}
	})
}
