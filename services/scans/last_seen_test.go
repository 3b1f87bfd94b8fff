package scans_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/internal/apitest"
)

// wantLastSeen compares the scan that an issue names as its last one (0: none) and the stored one (0: null).
func wantLastSeen(t *testing.T, what string, s *apitest.Server, file string, shown, stored int64) {
	t.Helper()
	row := s.Store.Reader.Finding.Query().Where(finding.FilePath(file)).OnlyX(s.System(t))
	if got := row.LastSeenScanID; (got == nil) != (stored == 0) || got != nil && *got != stored {
		t.Errorf("%s: %s has the scan %v, want %d", what, file, got, stored)
	}
	if row.State == "removed" {
		return
	}
	var issue struct {
		LastSeenScan *struct {
			ID int64 `json:"id,string"`
		} `json:"lastSeenScan"`
	}
	body := s.Body(t, s.Token, http.MethodGet, fmt.Sprintf("/api/agent/deployments/%d/issues/v2/%d", s.DeploymentID, row.ID), "", 200)
	if err := json.Unmarshal([]byte(body), &issue); err != nil {
		t.Fatal(err)
	}
	if issue.LastSeenScan == nil || issue.LastSeenScan.ID != shown {
		t.Errorf("%s: the issue in %s names %v, want scan %d", what, file, issue.LastSeenScan, shown)
	}
}

// The last scan of a finding is the latest that reported it. Only scans that do not report it store which one did.
func TestLastSeenScan(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		both := sarifOf(t, run{Tool: "gosec", Files: targets("db.go", "web.go"), Results: []result{sqli, xss}})
		web := sarifOf(t, run{Tool: "gosec", Files: targets("web.go"), Results: []result{xss}})
		first := upload(t, s, "main", both, "commit", "c1").GetScanId()
		wantLastSeen(t, "first", s, "db.go", first, 0)
		second := upload(t, s, "main", both, "commit", "c2").GetScanId()
		wantLastSeen(t, "again", s, "db.go", second, 0)
		third := upload(t, s, "main", web, "commit", "c3").GetScanId()
		wantLastSeen(t, "left out once", s, "db.go", second, second)
		wantLastSeen(t, "not left out", s, "web.go", third, 0)
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Failed: true, Files: targets("web.go")}), "commit", "c4")
		wantLastSeen(t, "a failed run", s, "web.go", third, 0)
		upload(t, s, "main", sarifOf(t, run{Tool: "eslint", Results: []result{weak}}), "commit", "c4")
		wantLastSeen(t, "another tool", s, "web.go", third, 0)
		upload(t, s, "main", web, "commit", "c5")
		wantLastSeen(t, "left out twice", s, "db.go", 0, second)
	})
}

// A finding that is fixed keeps the last scan that reported it, and one that is back has the newest.
func TestLastSeenScanOfFixedFindings(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		both := sarifOf(t, run{Tool: "gosec", Results: []result{sqli, xss}})
		first := upload(t, s, "main", both).GetScanId()
		second := upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{xss}})).GetScanId()
		wantLastSeen(t, "fixed", s, "db.go", first, first)
		wantLastSeen(t, "still there", s, "web.go", second, 0)
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{xss}}))
		wantLastSeen(t, "still fixed", s, "db.go", first, first)
		back := upload(t, s, "main", both).GetScanId()
		wantLastSeen(t, "back", s, "db.go", back, 0)
	})
}

// The origin of a rule is what the scanner last said about it.
func TestRuleOrigin(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		scanner := newScanner(s)
		for _, origin := range []string{"pro_rules", "publish", ""} {
			scanner.scan(t, recorded(t, "results", func(body object) {
				for _, found := range body["findings"].([]any) {
					with(object{"rule": object{"origin": origin}}, "metadata", "semgrep.dev")(found.(object))
				}
			}))
			word := map[string]string{"pro_rules": "PRO_RULES", "publish": "CUSTOM"}[origin]
			ids := s.Store.Reader.Finding.Query().IDsX(s.System(t))
			body := s.Get(t, fmt.Sprintf("/api/agent/deployments/%d/issues/v2/%d", s.DeploymentID, ids[0]))
			if word != "" && !strings.Contains(body, `"ruleOrigin":"RULE_ORIGIN_`+word+`"`) || word == "" && strings.Contains(body, "ruleOrigin") {
				t.Errorf("%q: %s", origin, body)
			}
		}
	})
}
