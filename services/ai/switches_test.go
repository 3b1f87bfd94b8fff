package ai_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// products changes the deployment's product configuration.
func (s *modelled) products(t testing.TB, body string) {
	t.Helper()
	s.call(t, http.MethodPut, fmt.Sprintf("/api/agent/deployments/%d/products", s.DeploymentID), body, http.StatusOK)
}

// A deployment can disable features of the server. A feature that is not set is enabled.
func TestSwitchedOff(t *testing.T) {
	t.Parallel()
	eachModelled(t, always("true_positive"), nil, func(t *testing.T, s *modelled) {
		id := s.seed(t, fact{})
		task := func(chain string, status int) string {
			t.Helper()
			return s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d],"regenerate":true,"chains":[%q]}}`, id, chain), status)
		}
		fixErrors := func() string {
			t.Helper()
			return errorTypes(t, s.autofix(t, id)) + " " + errorTypes(t, s.fixJob(t, id, http.StatusOK))
		}
		const full, triage, tags = "CHAIN_AUTOTRIAGE_WITH_GUIDANCE_AND_AUTOFIX", "CHAIN_AUTOTRIAGE", "CHAIN_ISSUE_TAGS"
		s.products(t, `{"approversTag":"pci"}`)
		task(full, http.StatusOK)
		s.analysis(t, id)
		for _, c := range []struct {
			products, fixes string
			refused         map[string]string
		}{
			{`{"ai":{"enabled":false}}`, "AUTOFIX_NOT_ENABLED AUTOFIX_DISABLED", map[string]string{full: "ai.enabled", triage: "ai.enabled", tags: "ai.enabled"}},
			{`{"ai":{"enabled":true},"sast":{"enabled":true,"ai_autotriage":{"enabled":true}}}`, "AUTOFIX_NOT_ENABLED AUTOFIX_DISABLED",
				map[string]string{full: "sast.ai_autofix.enabled", triage: "", tags: ""}},
			{`{"ai":{"enabled":true,"allowed_providers":["mistral"]}}`, "AUTOFIX_NOT_ENABLED AI_PROVIDER_NOT_ALLOWED",
				map[string]string{triage: "ai.allowed_providers", tags: "ai.allowed_providers"}},
			{`{"ai":{"enabled":true,"allowed_providers":["mistral","127.0.0.1"]},"sast":{"enabled":true,"ai_autofix":{"enabled":true}}}`, "SCM_CONFIG_NOT_FOUND SCM_CONFIG_NOT_FOUND",
				map[string]string{full: "sast.ai_autotriage.enabled", triage: "sast.ai_autotriage.enabled", tags: ""}},
		} {
			s.products(t, c.products)
			for chain, want := range c.refused {
				if want == "" {
					task(chain, http.StatusOK)
					s.analysis(t, id)
				} else if body := task(chain, http.StatusBadRequest); !strings.Contains(body, "FAILED_PRECONDITION") || !strings.Contains(body, "switched it off") || !strings.Contains(body, ": "+want+" of its products") {
					t.Errorf("%s with %s: %s", chain, c.products, body)
				}
			}
			if got := fixErrors(); got != c.fixes {
				t.Errorf("with %s fixes say %s", c.products, got)
			}
		}
	})
}

// Waiting analyses are not sent to the model after AI is disabled.
func TestSwitchedOffMeanwhile(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		model := newHolding()
		s := startModelled(t, model.reply, on)
		id := s.seed(t, fact{})
		s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%d]}}`, id), http.StatusOK)
		<-model.asked
		s.products(t, `{"ai":{}}`)
		s.die(t, "ai_analysis", "ai_analyses")
		if a := s.analysis(t, id); a.Status != "failed" || !strings.Contains(a.Error, "switched it off") || len(s.model.Requests()) != 1 {
			t.Errorf("%+v after %d questions", a, len(s.model.Requests()))
		}
		close(model.may)
	})
}
