package scans_test

import (
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// TestSecretsInNamesOfRules: a secret in a title does not become the name of a rule, in no list and in no table.
func TestSecretsInNamesOfRules(t *testing.T) {
	t.Parallel()
	const secret = "Zq88hunter-Kx9v"
	reports := map[string]string{
		"dojo": `{"findings":[{"title":"Hardcoded credential ` + secret + `","severity":"High","description":"The code has ` + secret + `","cwe":798,"file_path":"a.py","line":3}]}`,
		"gitlab": `{"version":"15.0.0","scan":{"type":"secret_detection","status":"success","scanner":{"id":"x","name":"x"}},"vulnerabilities":[{"category":"secret_detection",
			"name":"Key ` + secret + `","severity":"High","raw_source_code_extract":"` + secret + `","identifiers":[{"type":"x","name":"Key ` + secret + `","value":"` + secret + `"}],
			"location":{"file":"a.py","start_line":3}}]}`,
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for name, report := range reports {
			answer, _ := uploadTo(t, s, "acme/"+name, []byte(report))
			if answer.GetCreated() != 1 || strings.Contains(answer.String(), secret) {
				t.Errorf("%s: %v", name, answer)
			}
			if again, _ := uploadTo(t, s, "acme/"+name, []byte(report)); again.GetUnchanged() != 1 {
				t.Errorf("%s again: %v", name, again)
			}
			if stored := storedFindings(t, s, "acme/"+name); strings.Contains(stored, secret) {
				t.Errorf("%s: %s", name, stored)
			}
		}
		for _, r := range s.Store.Reader.Rule.Query().AllX(s.System(t)) {
			if strings.Contains(r.Name+string(r.Content), secret) {
				t.Errorf("rule %s", r.Name)
			}
		}
	})
}
