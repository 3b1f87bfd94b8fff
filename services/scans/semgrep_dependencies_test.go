package scans_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// TestSemgrepSupplyChain: dependencies in Semgrep's JSON mean the same as the ones that semgrep ci sends.
func TestSemgrepSupplyChain(t *testing.T) {
	t.Parallel()
	report := testdata(t, "formats/semgrep-supply-chain.json")
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		advisories := fmt.Sprintf("/api/sca/deployments/%d/advisories", s.DeploymentID)
		s.Body(t, s.Token, http.MethodPost, advisories, `{"exploitPredictions":{"scoredAt":"2026-11-25T00:00:00Z","scores":[{"cve":"CVE-2021-44906","score":0.62,"percentile":0.98}]}}`, 200)
		s.Body(t, s.Token, http.MethodPost, advisories, `{"knownExploits":{"vulnerabilities":[{"cve":"CVE-2021-44906","listedAt":"2026-05-04T00:00:00Z"}]}}`, 200)
		at3f := "https://git.acme.test/acme/web/blob/3f2a/"
		s.Upload(t, "acme/web", "main", report, "commit", "3f2a", "repo_url", "https://git.acme.test/acme/web")
		findings := listFindings(t, s, "sca", "")
		if len(findings) != 4 {
			t.Fatalf("%d findings, want 4: %v", len(findings), findings)
		}
		used := of(t, findings, "CVE-2021-44906")
		wantAt(t, used, map[string]string{
			"found_dependency.package": "minimist", "found_dependency.version": "1.2.5", "found_dependency.transitivity": "direct",
			"found_dependency.lockfile_line_url": at3f + "web/package-lock.json#L30", "reachability": "reachable",
			"usage.location.url": at3f + "web/src/app.js#L3", "location.file_path": "web/src/app.js", "epss_score.score": "0.62",
			"known_exploit.listed_at": "2026-05-04T00:00:00.000000Z", "fix_recommendations": "[map[package:minimist version:1.2.6]]",
		})
		wantAt(t, of(t, findings, "GHSA-h5c8-rqwp-cp95"), map[string]string{
			"found_dependency.transitivity": "transitive", "found_dependency.lockfile_line_url": at3f + "api/requirements.txt#L2",
			"reachability": "no reachability analysis", "usage": "<nil>",
		})
		wantAt(t, of(t, findings, "CVE-2024-0001"), map[string]string{
			"found_dependency.transitivity": "unknown", "found_dependency.lockfile_line_url": at3f + "web/package-lock.json#L40",
			"reachability": "conditionally reachable", "reachable_condition": "It is vulnerable on Windows.", "usage": "<nil>",
		})
		wantAt(t, of(t, findings, "MAL-2024-0002"), map[string]string{"reachability": "always reachable", "is_malicious": "true"})
		issue := parsed(t, s.Get(t, fmt.Sprintf("/api/agent/deployments/%d/issues/v2/%.0f", s.DeploymentID, used["id"])))
		wantAt(t, issue, map[string]string{
			"scaAttributes.foundDependency.filePath": "web/package-lock.json", "scaAttributes.foundDependency.transitivity": "DIRECT",
			"scaAttributes.reachability": "REACHABILITY_REACHABLE", "ruleReferences": "[https://nvd.nist.gov/vuln/detail/CVE-2021-44906]",
		})
		for filter, want := range map[string]int{"&transitivities=direct": 1, "&transitivities=transitive": 1, "&exposures=reachable": 1} {
			if got := at(parsed(t, s.Get(t, "/api/v1/deployments/acme/findings?issue_type=sca"+filter)), "findings").([]any); len(got) != want {
				t.Errorf("%s: %d findings, want %d", filter, len(got), want)
			}
		}
		again := s.Upload(t, "acme/web", "main", report, "commit", "3f2b", "repo_url", "https://git.acme.test/acme/web")
		if !strings.Contains(again, `"created":0,"updated":0,"unchanged":4`) {
			t.Errorf("again: %s", again)
		}
	})
}
