package scans_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// sarifResults is a report of a tool with the JSON of its rules and results.
func sarifResults(rules, results string) []byte {
	return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"T","rules":[` + rules + `]}},"results":[` + results + `]}]}`)
}

// located is a result with properties.
func located(rule, file, properties string) string {
	return fmt.Sprintf(`{"ruleId":%q,"message":{"text":"m"},"properties":{%s},"locations":[{"physicalLocation":{"artifactLocation":{"uri":%q},"region":{"startLine":1}}}]}`,
		rule, properties, file)
}

// confidences are the confidences of the rules of a project's findings.
func confidences(t *testing.T, s *apitest.Server, project string) map[string]string {
	t.Helper()
	all := map[string]string{}
	body := s.Get(t, "/api/v1/deployments/"+s.Slug+"/findings?issue_type=sast&repos="+project)
	for _, f := range at(parsed(t, body), "findings").([]any) {
		rule, shown := fmt.Sprint(at(f, "rule_name")), fmt.Sprint(at(f, "confidence"))
		if shown != fmt.Sprint(at(f, "rule", "confidence")) {
			t.Errorf("%s has two confidences: %v", rule, f)
		}
		all[rule] = shown
	}
	return all
}

// TestConfidenceOfResults: the confidence of a rule is the highest of its results. A result that says nothing has the
// rule's own, or medium.
func TestConfidenceOfResults(t *testing.T) {
	t.Parallel()
	rules := `{"id":"own","properties":{"precision":"high"}},{"id":"says-low","properties":{"precision":"high"}},{"id":"mixed"},{"id":"partly"},{"id":"silent"}`
	results := strings.Join([]string{
		located("own", "a.c", ``), located("says-low", "a.c", `"confidence":"LOW"`),
		located("mixed", "a.c", `"confidence":"low"`), located("mixed", "b.c", `"confidence":"high"`),
		located("partly", "a.c", `"confidence":"low"`), located("partly", "b.c", ``), located("silent", "a.c", ``),
	}, ",")
	reports := map[string]struct {
		report []byte
		want   map[string]string
	}{
		"sarif": {sarifResults(rules, results), map[string]string{"own": "high", "says-low": "low", "mixed": "high", "partly": "medium", "silent": "medium"}},
		"semgrep": {[]byte(`{"version":"1.100.0","errors":[],"paths":{"scanned":["a.py"]},"results":[
			{"check_id":"sure","path":"a.py","start":{"line":1,"col":1},"end":{"line":1,"col":2},"extra":{"message":"m","severity":"ERROR","metadata":{"confidence":"HIGH"}}},
			{"check_id":"unsure","path":"a.py","start":{"line":2,"col":1},"end":{"line":2,"col":2},"extra":{"message":"m","severity":"ERROR","metadata":{"confidence":"LOW"}}}]}`),
			map[string]string{"sure": "high", "unsure": "low"}},
		"zap": {testdata(t, "formats/zap.json"), map[string]string{"40012": "medium", "10096": "low"}},
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for name, c := range reports {
			s.Upload(t, name, "main", c.report)
			if got := confidences(t, s, name); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
		body := s.Get(t, "/api/v1/deployments/"+s.Slug+"/findings?issue_type=sast&confidence=low&repos=sarif")
		if found := at(parsed(t, body), "findings").([]any); len(found) != 1 || at(found[0], "rule_name") != "says-low" {
			t.Errorf("filter: %s", body)
		}
		// A later report may have learnt more.
		s.Upload(t, "sarif", "main", sarifResults(rules, strings.ReplaceAll(results, `"LOW"`, `"medium"`)))
		if got := confidences(t, s, "sarif")["says-low"]; got != "medium" {
			t.Errorf("after another report: %s", got)
		}
	})
}
