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

// TestFixesOfTheSameEcosystem: packages of other ecosystems and releases have the same name, but other fixed versions.
func TestFixesOfTheSameEcosystem(t *testing.T) {
	t.Parallel()
	affected := func(ecosystem, version string) string {
		return `{"package":{"name":"m","ecosystem":"` + ecosystem + `"},"ranges":[{"type":"ECOSYSTEM","events":[{"fixed":"` + version + `"}]}]}`
	}
	all := affected("npm", "1.1.0") + "," + affected("PyPI", "2.2.0") + "," + affected("Debian:11", "3.3.0") + "," + affected("Debian:12", "4.4.0")
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for ecosystem, want := range map[string]string{"npm": "1.1.0", "PyPI": "2.2.0", "Debian:12": "4.4.0", "Debian": "3.3.0, 4.4.0"} {
			s.Upload(t, ecosystem, "main", []byte(`{"results":[{"source":{"path":"go.mod","type":"lockfile"},"packages":[{"package":{"name":"m","version":"1.0.0","ecosystem":"`+
				ecosystem+`"},"vulnerabilities":[{"id":"GHSA-aaaa-bbbb-cccc","affected":[`+all+`]}]}]}]}`))
			if stored := storedFindings(t, s, ecosystem); !strings.Contains(stored, "fixed: "+want+"\n") {
				t.Errorf("%s: want %s in %s", ecosystem, want, stored)
			}
		}
	})
}
