package scans_test

import (
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// TestWhatWasNotLookedAtStaysOpen: a report that says that its tool could not look at a finding keeps it open. The last
// report of each case looks again and closes it.
func TestWhatWasNotLookedAtStaysOpen(t *testing.T) {
	t.Parallel()
	const flask = `{"dependencies":[{"name":"flask","version":"0.5","vulns":[{"id":"PYSEC-1","fix_versions":["1.0"],"description":"x"}]},{"name":"jinja2","version":"1","vulns":[]}],"fixes":[]}`
	sarif := func(invocation, results string) string {
		return `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"acme","rules":[{"id":"R1"}],"notifications":[{"id":"N1","defaultConfiguration":{"level":"error"}}]}},
			"invocations":[{"executionSuccessful":true` + invocation + `}],"results":` + results + `}]}`
	}
	const result = `[{"ruleId":"R1","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":3}}}]}]`
	const checkov = `{"check_type":"terraform","results":{"failed_checks":[{"check_id":"CKV_1","check_name":"n","file_path":"/a.tf","file_line_range":[1,2]}]},"summary":{"checkov_version":"3"}}`
	const eslint = `[{"filePath":"a.js","messages":[{"ruleId":"r","severity":2,"message":"m","line":3}]}]`
	cases := map[string][]string{
		"pip-audit":           {flask, `{"dependencies":[{"name":"flask","skip_reason":"x"},{"name":"jinja2","version":"1","vulns":[]}],"fixes":[]}`, strings.Replace(flask, `{"id":"PYSEC-1","fix_versions":["1.0"],"description":"x"}`, "", 1)},
		"rule not loaded":     {sarif("", result), sarif(`,"toolConfigurationNotifications":[{"level":"error","associatedRule":{"id":"R1"},"message":{"text":"rule R1 could not be loaded"}}]`, "[]"), sarif("", "[]")},
		"level of descriptor": {sarif("", result), sarif(`,"toolExecutionNotifications":[{"descriptor":{"id":"N1"},"message":{"text":"m"}}]`, "[]"), sarif("", "[]")},
		"results null":        {sarif("", result), sarif("", "null"), sarif("", "[]")},
		"checkov":             {checkov, `{"passed":0,"failed":0,"skipped":0,"parsing_errors":3,"resource_count":0,"checkov_version":"3"}`, `{"passed":1,"failed":0,"skipped":0,"parsing_errors":0,"resource_count":0,"checkov_version":"3"}`},
		"eslint":              {eslint, `[{"filePath":"a.js","messages":[{"ruleId":null,"severity":1,"message":"File ignored because of a matching ignore pattern."}]}]`, `[{"filePath":"a.js","messages":[]}]`},
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for name, reports := range cases {
			project := "acme/" + strings.ReplaceAll(name, " ", "-")
			first, _ := uploadTo(t, s, project, []byte(reports[0]))
			blind, warnings := uploadTo(t, s, project, []byte(reports[1]))
			last, _ := uploadTo(t, s, project, []byte(reports[2]))
			if first.GetCreated() != 1 || blind.GetFixed()+blind.GetRemoved() != 0 || last.GetFixed() != 1 {
				t.Errorf("%s: created %d, then closed %d, then fixed %d", name, first.GetCreated(), blind.GetFixed()+blind.GetRemoved(), last.GetFixed())
			}
			if !strings.Contains(warnings, "closed") && !strings.Contains(warnings, "errors: 1") {
				t.Errorf("%s: no warning: %s", name, warnings)
			}
		}
	})
}
