package policies_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// TestOpenFindingsOfDryRuns: a dry run says how many open findings each change touches. They are those of the primary
// branches that policies count.
func TestOpenFindingsOfDryRuns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant) // acme/api has the tag
		rules := fmt.Sprintf("/api/rules/v1/deployments/%d/rules", s.DeploymentID)
		s.Body(t, s.Token, http.MethodPatch, rules, `{"names":["acme.exec"],"mode":"RULE_MODE_COMMENT"}`, 200) // acme.eval is monitored
		report := func(tool, rule string, levels ...string) []byte {
			var results []string
			for i, level := range levels {
				results = append(results, fmt.Sprintf(`{"ruleId":%q,"level":%q,"message":{"text":"m"},"locations":[{"physicalLocation":{
					"artifactLocation":{"uri":"%d.go"},"region":{"startLine":1,"snippet":{"text":"%d"}}}}]}`, rule, level, i, i))
			}
			return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"` + tool + `"}},"results":[` + strings.Join(results, ",") + `]}]}`)
		}
		s.Upload(t, "acme/web", "main", report("lint", "a", "error", "error", "warning"))
		s.Upload(t, "acme/web", "dev", report("lint", "a", "error", "error", "error", "error"))
		s.Upload(t, "acme/api", "main", report("lint", "b", "error"))
		s.Upload(t, "acme/api", "main", report("semgrep", "acme.eval", "error"))
		s.Upload(t, "acme/api", "main", report("semgrep", "acme.exec", "error"))
		s.Upload(t, "acme/api", "main", report("semgrep", "other", "error"), "category", "x")

		policy := func(conditions, actions string) string {
			return `[{"name":"P","active":true,"filters":{"mode":"all","conditions":[` + conditions + `]},"actions":[` + actions + `]}]`
		}
		const high, block = `{"type":"severity","values":["high"]}`, `{"type":"block"}`
		touches := func(what, policies string, want int) {
			t.Helper()
			var answer struct {
				Creates, Updates, Deletes []struct {
					OpenFindings int `json:"open_findings"`
				}
				Errors []any `json:"validation_errors"`
			}
			body := s.dry(t, policies)
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatal(err)
			}
			all := append(append(answer.Creates, answer.Updates...), answer.Deletes...)
			if len(all) != 1 || all[0].OpenFindings != want {
				t.Errorf("%s: want %d in %s", what, want, body)
			}
		}
		touches("all high ones", policy(high, block), 5)
		touches("of a project", policy(high+`,{"type":"project","values":["ACME/web"]}`, block), 2)
		touches("of a tag", policy(high+`,{"type":"project_tag","values":["acme-pci"]}`, block), 3)
		touches("not of a tag", policy(`{"type":"project_tag","values":["acme-pci"],"mode":"exclude"}`, block), 3)
		touches("new ones", policy(`{"type":"finding_state","values":["new"]}`, block), 0)
		touches("inactive", strings.Replace(policy(high, block), "true", "false", 1), 0)

		s.put(t, policy(high, block), 200)
		touches("fewer", policy(high+`,{"type":"project","values":["acme/web"]}`, block), 3)
		touches("other ones", policy(`{"type":"severity","values":["medium"]}`, block), 6)
		touches("another action", policy(high, `{"type":"comment"}`), 5)
		touches("another description", strings.Replace(policy(high, block), `"active"`, `"description":"d","active"`, 1), 0)
		touches("deactivated", strings.Replace(policy(high, block), "true", "false", 1), 5)
		touches("deleted", `[]`, 5)
		apitest.Golden(t, "dry_run_open_findings", s.dry(t, `[]`))
	})
}

// TestUnknownKeysAreRefused: a misspelled key would make a policy broader, so the error names it.
func TestUnknownKeysAreRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		before := s.Get(t, s.remediation()) + s.Get(t, s.detectionPath("code"))
		for body, field := range map[string]string{
			`{"bundle":{"policies":[],"polices":[]}}`: "bundle.polices",
			`{"bundle":{"policies":[{"name":"a","filters":{"mode":"all"},"actions":[{"type":"block"}],"enabled":true}]}}`:                      "bundle.policies[0].enabled",
			`{"bundle":{"policies":[{"name":"a","filters":{"mode":"all","condtions":[]},"actions":[{"type":"block"}]}]}}`:                      "bundle.policies[0].filters.condtions",
			`{"bundle":{"policies":[{"name":"a","filters":{"mode":"all","conditions":[{"type":"severity","value":["high"]}]},"actions":[]}]}}`: "bundle.policies[0].filters.conditions[0].value",
		} {
			s.want(t, 400, s.Token, http.MethodPut, s.remediation(), body, "*", `"code":"INVALID_ARGUMENT"`, field, "there is no such field")
			s.want(t, 400, s.Token, http.MethodPost, s.remediation()+":dryRun", body, "", field)
			s.want(t, 400, s.Token, http.MethodPost, s.remediation()+":backTest", body, "", field)
		}
		for body, field := range map[string]string{
			`{"bundle":{"rulesets":["default"],"disable":["acme.eval"]}}`:                                                        "bundle.disable",
			`{"bundle":{"exceptions":[{"exception_type":"exclude","projct":"acme/web","rule":"acme.eval","rule_type":"rule"}]}}`: "bundle.exceptions[0].projct",
		} {
			s.want(t, 400, s.Token, http.MethodPut, s.detectionPath("code"), body, "*", `"code":"INVALID_ARGUMENT"`, field)
			s.want(t, 400, s.Token, http.MethodPost, s.detectionPath("code")+":dryRun", body, "", field)
		}
		if got := s.Get(t, s.remediation()) + s.Get(t, s.detectionPath("code")); got != before {
			t.Errorf("something refused was stored: %s", got)
		}
		// Outside of the bundle, clients may send what they like.
		s.want(t, 200, s.Token, http.MethodPost, s.remediation()+":dryRun", `{"bundle":{"policies":[]},"comment":"x"}`, "")
	})
}

// TestAlikeNames: people cannot tell policies apart by names that look alike.
func TestAlikeNames(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		two := func(a, b string) string {
			out := []string{}
			for i, name := range []string{a, b} {
				out = append(out, fmt.Sprintf(`{"slug":"p%d","name":"%s","filters":{"mode":"all"},"actions":[{"type":"comment"}]}`, i, name))
			}
			return "[" + strings.Join(out, ",") + "]"
		}
		for _, names := range [][2]string{
			{"Caf\u00e9", "Cafe\u0301"}, {"No criticals", "no  Criticals "}, {"No criticals", "No\u200b criticals"}, {"No criticals", "No\u00a0criticals"}, {"A1", "\uff21\uff11"},
		} {
			if got := problems(t, s.dry(t, two(names[0], names[1]))); len(got) != 1 || got[0].Context["field"] != "policies[1].name" {
				t.Errorf("%q: %v", names, got)
			}
		}
		if got := problems(t, s.dry(t, two("No criticals", "No critical"))); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
}

// TestCategoriesOfRules: a category exists if a rule has it, also one that has found nothing.
func TestCategoriesOfRules(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.want(t, 200, s.Token, http.MethodPost, fmt.Sprintf("/api/rules/v1/deployments/%d/rules", s.DeploymentID), `{"files":[{"name":"a.yaml","text":
			"rules: [{id: acme.own, languages: [go], severity: ERROR, message: No, pattern: x, metadata: {category: house rules}}]"}]}`, "")
		with := func(category string) string {
			return s.dry(t, `[{"name":"a","filters":{"mode":"all","conditions":[{"type":"category","values":["`+category+`"]}]},"actions":[{"type":"comment"}]}]`)
		}
		for _, category := range []string{"security", "correctness", "house rules"} {
			if got := problems(t, with(category)); len(got) != 0 {
				t.Errorf("%s: %v", category, got)
			}
		}
		if got := problems(t, with("house")); len(got) != 1 || got[0].Code != "UNKNOWN_REFERENCE" {
			t.Errorf("got %v", got)
		}
	})
}
