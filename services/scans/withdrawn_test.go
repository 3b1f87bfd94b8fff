package scans_test

import (
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// TestWithdrawnAdvisories: an advisory that was withdrawn is no finding, and closes the one that was.
func TestWithdrawnAdvisories(t *testing.T) {
	t.Parallel()
	report := func(withdrawn, alias string) []byte {
		return []byte(`{"results":[{"source":{"path":"go.mod","type":"lockfile"},"packages":[{"package":{"name":"a.test/m","version":"1.0.0","ecosystem":"Go"},
			"groups":[{"ids":["GHSA-aaaa-bbbb-cccc","GO-2024-0001"],"aliases":["CVE-2024-0001"]}],
			"vulnerabilities":[{"id":"GO-2024-0001","summary":"s","withdrawn":"` + withdrawn + `"},{"id":"GHSA-aaaa-bbbb-cccc","summary":"s","withdrawn":"` + alias + `"}]}]}]}`)
	}
	const day = "2026-05-04T00:00:00Z"
	vuln := func(withdrawn string) []byte {
		return []byte(`{"config":{"protocol_version":"v1.0.0","scanner_name":"govulncheck","scan_level":"symbol"}}
			{"osv":{"id":"GO-2024-0001","summary":"s","withdrawn":"` + withdrawn + `"}}
			{"finding":{"osv":"GO-2024-0001","trace":[{"module":"a.test/m","version":"v1.0.0"}]}}`)
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, step := range []struct {
			name   string
			report []byte
			want   string
		}{
			{"osv", report("", ""), `"created":1,`},
			{"osv", report(day, ""), `"unchanged":1,`}, // the advisory has another name that stands
			{"osv", report("", day), `"unchanged":1,`},
			{"osv", report(day, day), `"fixed":1,`},
			{"osv", report("", ""), `"reopened":1,`},
			{"govulncheck", vuln(""), `"created":1,`},
			{"govulncheck", vuln(day), `"fixed":1,`},
		} {
			if got := s.Upload(t, step.name, "main", step.report); !strings.Contains(got, step.want) {
				t.Errorf("%s: %s, want %s", step.report, got, step.want)
			}
		}
	})
}
