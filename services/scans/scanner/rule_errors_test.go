package scanner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/scans/scanner"
)

func TestRuleErrorsIn(t *testing.T) {
	rules := []string{"acme.eval", "acme/js.eval", "acme.a-b_c", "acme.memory.timeout", "rule"}
	isRule := func(name string) bool { return slices.Contains(rules, name) }
	for _, test := range []struct{ output, want string }{
		{"", ""},
		{"Pattern parse error in rule acme.eval:\n Invalid pattern for Python:\nsecret", "acme.eval: Pattern parse error in rule acme.eval: Invalid pattern for Python:"},
		{"[ERROR] Rule parse error in rule acme/js.eval: bad", "acme/js.eval: [ERROR] Rule parse error in rule acme/js.eval: bad"},
		{"\x1b[31mERROR\x1b[0m invalid rule 'acme.a-b_c'.", "acme.a-b_c: ERROR invalid rule 'acme.a-b_c'."},
		{"Pattern parse error in rule \x1b[1macme.eval\x1b[0m:", "acme.eval: Pattern parse error in rule acme.eval:"},
		{"\x1b[1;31mError\x1b[0m in \x1b[22mrule\x1b[24m \x1b[1macme.eval", "acme.eval: Error in rule acme.eval"},
		{"invalid rule acme.memory.timeout", "acme.memory.timeout: invalid rule acme.memory.timeout"},
		{"Error while running rules: 1 timeout error. rule acme.eval", ""},
		{"ERROR: rule acme.eval timed out on a.py", ""},
		{"error: out of memory in rule acme.eval", ""},
		{"Error: Too many matches: rule acme.eval", ""},
		{"Stack overflow error when running rule acme.eval", ""},
		{`{"code":4,"type":"Rule parse error","rule_id":"acme.eval"}`, `acme.eval: {"code":4,"type":"Rule parse error","rule_id":"acme.eval"}`},
		{"error: rule id: acme.eval. cannot be loaded", "acme.eval: error: rule id: acme.eval. cannot be loaded"},
		{"invalid rule acme.eval\ninvalid rule acme.eval\ninvalid rule acme/js.eval", "acme.eval: invalid rule acme.eval invalid rule acme.eval|acme/js.eval: invalid rule acme/js.eval"},
		{"Running rule acme.eval", ""},
		{"error in rule acme.evaluate", ""},
		{"error in file acme.eval", ""},
		{"ruleset error acme.eval", ""},
		{"error in rule ", ""},
	} {
		var got []string
		for _, e := range scanner.RuleErrorsIn(test.output, isRule) {
			got = append(got, e.Rule+": "+e.Text)
		}
		if strings.Join(got, "|") != test.want {
			t.Errorf("%q:\n got %q\nwant %q", test.output, strings.Join(got, "|"), test.want)
		}
	}
}

// FuzzRuleErrorsIn: only rules that exist are named, with a short text that every database can store.
func FuzzRuleErrorsIn(f *testing.F) {
	f.Add("Pattern parse error in rule acme.eval:\n x")
	f.Add("error rule rule rule acme.eval")
	f.Fuzz(func(t *testing.T, output string) {
		for _, e := range scanner.RuleErrorsIn(output, func(name string) bool { return strings.HasPrefix(name, "acme") }) {
			if !strings.HasPrefix(e.Rule, "acme") || len(e.Text) > 1000 || strings.ContainsRune(e.Text, 0) || strings.ToValidUTF8(e.Text, "") != e.Text {
				t.Errorf("%q: %+v", output, e)
			}
		}
	})
}
