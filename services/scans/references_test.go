package scans_test

import (
	"fmt"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// referencesOf are the references of the first finding of a project.
func referencesOf(t *testing.T, s *apitest.Server, project, product string) string {
	t.Helper()
	found := listed(t, s, project, product)
	if len(found) == 0 {
		t.Fatalf("%s has no findings", project)
	}
	return fmt.Sprint(issueOf(t, s, found[0].ID)["ruleReferences"])
}

// TestReferencesOfRules: pages about a problem are in reports of all kinds.
func TestReferencesOfRules(t *testing.T) {
	t.Parallel()
	one := located("R", "a.c", ``)
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for name, c := range map[string]struct {
			report []byte
			want   string
		}{
			"list":   {sarifResults(`{"id":"R","helpUri":"https://t.test/help","properties":{"references":["https://a.test/1","no page","javascript:alert(1)",{"url":"https://a.test/2"},"https://a.test/1"]}}`, one), "[https://a.test/1 https://a.test/2]"},
			"text":   {sarifResults(`{"id":"R","properties":{"references":"https://a.test/1\nhttps://a.test/2"}}`, one), "[https://a.test/1 https://a.test/2]"},
			"help":   {sarifResults(`{"id":"R","helpUri":"https://t.test/help"}`, one), "[https://t.test/help]"},
			"nopage": {sarifResults(`{"id":"R","helpUri":"javascript:alert(1)"}`, one), "[]"},
			"semgrep": {[]byte(`{"version":"1.100.0","errors":[],"paths":{"scanned":["a.py"]},"results":[{"check_id":"r","path":"a.py","start":{"line":1,"col":1},"end":{"line":1,"col":2},
				"extra":{"message":"m","severity":"ERROR","metadata":{"source":"https://rules.test/r","references":["https://a.test/1","https://a.test/2"]}}}]}`), "[https://a.test/1 https://a.test/2]"},
		} {
			s.Upload(t, name, "main", c.report)
			if got := referencesOf(t, s, name, "sast"); got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
	})
}
