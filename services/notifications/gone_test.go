package notifications_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
)

// The filters of a report name what exists. What is gone later is in config_error, and the rule can be replaced as it
// was read.
func TestReportFiltersNameWhatExists(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.seedNames(t)
		rule := func(filters string) string {
			return `{"notificationRule":{"channel":"webhook","name":"x","config":{"url":"https://hooks.acme.test/","secret":"` + hookSecret + `"},
				"send_report":{"cadence":"REPORT_CADENCE_DAILY","filters":` + filters + `}}}`
		}
		for filters, field := range map[string]string{
			`{"projects":["acme/web","acme/gone"]}`:   "send_report.filters.projects[1]",
			`{"projects":["globex/web"]}`:             "send_report.filters.projects[0]",
			`{"projectIds":["999"]}`:                  "send_report.filters.projectIds[0]",
			`{"tags":["PCI"]}`:                        "send_report.filters.tags[0]",
			`{"teams":["Blue"]}`:                      "send_report.filters.teams[0]",
			`{"ruleIds":["go.critical","go.gone"]}`:   "send_report.filters.ruleIds[1]",
			`{"ruleIds":["999"],"projects":["gone"]}`: "send_report.filters.projects[0]",
		} {
			body := s.Body(t, s.Token, http.MethodPost, s.actions(""), rule(filters), 400)
			if !strings.Contains(body, `notificationRule.`+field) || !strings.Contains(body, "there is no ") {
				t.Errorf("%s: %s", filters, body)
			}
		}
		whole := `{"projects":["ACME/Web"],"projectIds":["1"],"tags":["pci"],"ruleIds":["go.critical","1"]}`
		s.Body(t, s.Token, http.MethodPost, s.actions(""), rule(whole), 200)
		if got := s.configError(t); got != "" {
			t.Errorf("config_error is %q", got)
		}
		s.Body(t, s.Token, http.MethodDelete, fmt.Sprintf("/api/agent/deployments/%d/tags/pci", s.DeploymentID), "", 200)
		s.deleteProject(t)
		want := `send_report.filters has names that do not exist: there is no project "ACME/Web"; there is no project "1"; there is no tag "pci"`
		if got := s.configError(t); got != want {
			t.Errorf("config_error is %q, want %q", got, want)
		}
		s.Body(t, s.Token, http.MethodPut, s.actions("/1"), rule(whole), 200)
		s.Body(t, s.Token, http.MethodPut, s.actions("/1"), rule(`{"tags":["pci","new"]}`), 400)
	})
}

func (c caller) deleteProject(t testing.TB) {
	t.Helper()
	c.Body(t, c.Token, http.MethodDelete, fmt.Sprintf("/api/v1/deployments/%s/projects/acme/web", c.Slug), "", 200)
	apitest.Eventually(t, "the project is gone", func() bool { return c.Store.Reader.Project.Query().CountX(c.System(t)) == 0 })
}

// stored stores policies as versions did that accepted contradictions.
func (c caller) stored(t testing.TB, policies ...string) {
	t.Helper()
	err := c.Store.Write(tenant.NewContext(t.Context(), c.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		for i, source := range policies {
			policy := &policiesv1.RemediationPolicy{}
			if err := protojson.Unmarshal([]byte(source), policy); err != nil {
				return err
			}
			row := tx.RemediationPolicy.Create().SetSlug(policy.GetSlug()).SetPosition(int32(100 + i)).SetActive(true).
				SetCreatedAt(store.Now()).SetUpdatedAt(store.Now())
			if _, err := remediation.Store(row.Mutation(), policy); err != nil {
				return err
			}
			if err := row.Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A policy whose conditions no finding meets is refused, also if each of them alone is met.
func TestRuleOfPolicyThatNothingMeets(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.seedNames(t)
		severities := `{"type":"severity","values":["critical","high"]},{"type":"severity","values":["low","high"],"mode":"any"}`
		s.apply(t,
			policy("any-severity", `"mode":"any","conditions":[{"type":"severity","values":["critical"]},{"type":"severity","values":["low"]}]`),
			policy("high", all(severities)),
			policy("web", all(`{"type":"project","values":["Acme/WEB"]}`)),
			policy("not-web", all(`{"type":"project","values":["acme/web"],"mode":"exclude"}`)),
		)
		s.stored(t,
			policy("two-severities", all(`{"type":"severity","values":["critical"]},{"type":"severity","values":["low"]}`)),
			policy("two-products", all(`{"type":"product","values":["code"]},{"type":"product","values":["secrets"]}`)),
			policy("excluded", all(severities+`,{"type":"severity","values":["HIGH"],"mode":"exclude"}`)),
		)
		rule := func(slug string) string {
			return fmt.Sprintf(`{"notificationRule":{"channel":"webhook","name":"x","config":{"url":"https://hooks.acme.test/","secret":%q},"policy_slugs":[%q]}}`, hookSecret, slug)
		}
		for slug, kind := range map[string]string{"two-severities": "severity", "two-products": "product", "excluded": "severity"} {
			body := s.Body(t, s.Token, http.MethodPost, s.actions(""), rule(slug), 400)
			if !strings.Contains(body, "its conditions "+kind+" contradict each other") || !strings.Contains(body, "policy_slugs[0]") {
				t.Errorf("%s: %s", slug, body)
			}
		}
		for _, slug := range []string{"any-severity", "high", "not-web"} {
			s.rule(t, slug, "https://hooks.acme.test/", fmt.Sprintf(`,"policy_slugs":[%q]`, slug))
		}
		for id := range 3 {
			s.Body(t, s.Token, http.MethodDelete, s.actions(fmt.Sprintf("/%d", id+1)), "", 200)
		}
		s.rule(t, "web", "https://hooks.acme.test/", `,"policy_slugs":["web"]`)
		if got := s.configError(t); got != "" {
			t.Errorf("config_error is %q", got)
		}
		s.deleteProject(t)
		want := `policy_slugs has policies for which the rule sends nothing: no finding meets the conditions of the policy "web": there is no project "acme/web"`
		if got := s.configError(t); got != want {
			t.Errorf("config_error is %q, want %q", got, want)
		}
		s.rule(t, "not-web", "https://hooks.acme.test/", `,"policy_slugs":["not-web"]`)
	})
}
