package sarif_test

import (
	"slices"
	"strings"
	"testing"
)

func TestRuleClassification(t *testing.T) {
	for properties, want := range map[string][4]string{ // category, confidence, subcategories, vulnerability classes
		`{}`:                            {"security", "", "", ""},
		`{"category":"Best Practices"}`: {"best-practice", "", "", ""},
		`{"category":"Possible Security Vulnerability"}`:   {"security", "", "", ""},
		`{"category":"Possible Errors"}`:                   {"possible-errors", "", "", ""},
		`{"tags":["Correctness","audit","x"]}`:             {"correctness", "", "audit", ""},
		`{"precision":"very-high"}`:                        {"security", "high", "", ""},
		`{"precision":"medium","tags":["LOW CONFIDENCE"]}`: {"security", "medium", "", ""},
		`{"tags":["MEDIUM CONFIDENCE"]}`:                   {"security", "medium", "", ""},
		`{"precision":"low"}`:                              {"security", "low", "", ""},
		`{"confidence":"HIGH"}`:                            {"security", "high", "", ""},
		`{"subcategory":["vuln"],"vulnerability_class":["SQL Injection"],"cwe":["CWE-79"]}`: {"security", "", "vuln", "SQL Injection"},
		`{"subcategory":"audit","vulnerabilityClasses":"Other"}`:                            {"security", "", "audit", "Other"},
		`{"cwe":["79","CWE-080: Basic XSS","79"]}`:                                          {"security", "", "", "Cross-Site-Scripting (XSS)"},
		`{"tags":7,"precision":{},"category":null}`:                                         {"security", "", "", ""},
	} {
		r := read(t, run(`"tool":{"driver":{"name":"t","rules":[{"id":"r","properties":`+properties+`}]}},"results":[]`)).report.Runs[0].Rules()[0]
		got := [4]string{r.Category, r.Confidence, strings.Join(r.Subcategories, ","), strings.Join(r.VulnerabilityClasses, ",")}
		if got != want {
			t.Errorf("%s is %q, want %q", properties, got, want)
		}
	}
}

func TestConfidenceOfAResultWins(t *testing.T) {
	o := read(t, run(`"tool":{"driver":{"name":"Bandit","rules":[{"id":"B1","properties":{"precision":"high"}}]}},"results":[
		{"ruleId":"B1","message":{"text":"m"},"properties":{"issue_confidence":"LOW"}},{"ruleId":"B1","message":{"text":"m"}}]`))
	if o.results[0].Confidence != "low" || o.results[1].Confidence != "high" {
		t.Errorf("confidences are %q and %q", o.results[0].Confidence, o.results[1].Confidence)
	}
}

// A title is taken from any place in the report, and each CWE is named once.
func TestCWETitles(t *testing.T) {
	o := read(t, run(`"taxonomies":[{"taxa":[{"id":"089","shortDescription":{"text":"SQL Injection"}},{"id":"CWE-78","name":"OS Command\nInjection"}],"guid":"AA","name":"CWE"}],
		"tool":{"driver":{"name":"t","rules":[{"id":"r","properties":{"tags":["CWE-89","external/cwe/cwe-78","CWE-22: Path Traversal","CWE-22"]},
		"relationships":[{"target":{"id":"89","toolComponent":{"guid":"aa"}}},{"target":{"id":"78","toolComponent":{"index":0}}},
		{"target":{"id":"12","toolComponent":{"name":"OWASP"}}},{"target":{"id":"13"}},null]}]}},"results":[]`))
	want := []string{"CWE-89: SQL Injection", "CWE-78: OS Command Injection", "CWE-22: Path Traversal"}
	if got := o.report.Runs[0].Rules()[0].CWENames; !slices.Equal(got, want) {
		t.Errorf("CWEs are %q, want %q", got, want)
	}
}
