package scans_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// atCommit is a commit with the local time of its author.
func atCommit(name, at string) func(object) {
	return func(body object) {
		with(name, "project_metadata", "commit")(body)
		with(at, "project_metadata", "commit_timestamp")(body)
	}
}

var (
	oldCommit = atCommit(strings.Repeat("a", 40), "2026-11-20T10:00:00")
	newCommit = atCommit(strings.Repeat("b", 40), "2026-11-20T10:05:00")
)

// lines keeps the findings of some lines, in their order.
func lines(lines ...float64) func(object) {
	return without(func(f object) bool {
		for _, line := range lines {
			if f["line"] == line {
				return true
			}
		}
		return false
	})
}

// The scan of an older commit ends last: it overwrites nothing that the newer one decided.
func TestScannerOlderCommitDecidesNothing(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.scan(t, recorded(t, "results", lines(4, 20)), atCommit(strings.Repeat("0", 40), "2026-11-20T09:00:00"))
		slow := c.create(t, oldCommit)
		newer, _ := c.scan(t, recorded(t, "results", lines(20), func(b object) { // line 20 moved, and lib/hash.py is fixed
			list, _ := b["findings"].([]any)
			with(23.0, "line")(list[0].(object))
		}), newCommit)
		want := []string{"app/run.py:23 unresolved open", "lib/hash.py:4 fixed fixed", "lib/old.py:7 muted ignored"}
		wantList(t, "the newer scan", c.findingsOf(t, mainRef), want...)
		// The older commit has a finding that is fixed already (4), one that the newer one moved (20), and one that only
		// this commit has (12).
		c.complete(t, slow, c.results(t, slow, recorded(t, "results")))
		wantList(t, "the older scan ends", c.findingsOf(t, mainRef), append(want, "app/run.py:12 fixed fixed")...)
		row := s.Store.Reader.Scan.GetX(s.System(t), slow)
		if at(row.Stats, "older_than_scan") != float64(newer) || row.TotalCount != 4 || row.Status != "SCAN_STATUS_COMPLETED" {
			t.Errorf("%v", row)
		}
		c.scan(t, recorded(t, "results"), oldCommit)
		wantList(t, "the job of the older commit is run again", c.findingsOf(t, mainRef), append(want, "app/run.py:12 fixed fixed")...)
		c.scan(t, recorded(t, "results", lines()), oldCommit)
		wantList(t, "it closes nothing", c.findingsOf(t, mainRef), append(want, "app/run.py:12 fixed fixed")...)
		c.scan(t, recorded(t, "results", lines(12, 20)), newCommit)
		wantList(t, "the newer commit is scanned again", c.findingsOf(t, mainRef), "app/run.py:20 unresolved open", "lib/hash.py:4 fixed fixed",
			"lib/old.py:7 muted ignored", "app/run.py:12 unresolved open")
	})
}

// An older commit adds what the scan of the newer one could not look at. The rule that it does not run is gone.
func TestScannerOlderCommitAddsWhatIsUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(object)
		want   string
	}{
		"rule":        {with([]any{"acme.generic.weak-hash"}, "rule_ids"), "removed removed"},
		"file":        {with([]any{"lib/hash.py", "lib/old.py"}, "searched_paths"), "unresolved open"},
		"skipped":     {with([]any{"app/run.py"}, "skipped_paths"), "unresolved open"},
		"all":         {func(object) {}, "fixed fixed"},
		"other files": {with([]any{"other/main.py"}, "searched_paths"), "unresolved open"},
		"deleted":     {with([]any{"app/other.py", "lib/hash.py"}, "searched_paths"), "removed removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apitest.Each(t, func(t *testing.T, s *apitest.Server) {
				scanner := newScanner(s)
				slow := scanner.create(t, oldCommit)
				scanner.scan(t, recorded(t, "results", lines(), with([]any{}, "ignores"), c.change), newCommit)
				scanner.complete(t, slow, scanner.results(t, slow, recorded(t, "results", lines(12), with([]any{}, "ignores"), func(b object) {
					b["searched_paths"] = append(b["searched_paths"].([]any), "app/other.py")
				})))
				wantList(t, name, scanner.findingsOf(t, mainRef), "app/run.py:12 "+c.want)
			})
		})
	}
}

// The time of a commit has a zone in the list of contributions.
func TestScannerCommitTimeHasAZone(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		exact := func(name, at string) func(object) {
			return with([]any{object{"commit_hash": name, "commit_timestamp": at}}, "contributions")
		}
		first, second := strings.Repeat("a", 40), strings.Repeat("b", 40)
		// At the same place it is 19:00 for the older commit, and 11:00 for the newer one.
		c.scan(t, recorded(t, "results", exact(first, "2026-11-20T19:00:00+09:00")), atCommit(first, "2026-11-20T19:00:00"))
		id, _ := c.scan(t, recorded(t, "results", lines(), exact(second, "2026-11-20T11:00:00Z")), atCommit(second, "2026-11-20T11:00:00"))
		row := s.Store.Reader.Scan.GetX(s.System(t), id)
		if row.CommitTime == nil || row.Stats["older_than_scan"] != nil {
			t.Errorf("%v", row)
		}
		if got := c.findingsOf(t, mainRef); !strings.Contains(fmt.Sprint(got), "app/run.py:12 fixed") {
			t.Errorf("%v", got)
		}
	})
}

// Without a zone, a newer commit may have a time that is hours earlier, if the scans did not overlap.
func TestScannerCommitTimeOfAnotherZone(t *testing.T) {
	t.Parallel()
	const earlier = "2026-11-20T12:00:00"
	for name, c := range map[string]struct {
		at    string
		exact bool
		want  string
	}{
		"six hours":                 {"2026-11-20T06:00:00", false, "app/run.py:12 unresolved open"},
		"more than zones differ":    {"2026-11-19T09:00:00", false, "app/run.py:12 fixed fixed"},
		"six hours, with the zones": {"2026-11-20T06:00:00", true, "app/run.py:12 fixed fixed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apitest.Each(t, func(t *testing.T, s *apitest.Server) {
				scanner, second := newScanner(s), ""
				for _, one := range []struct {
					letter, at string
					lines      func(object)
				}{{"a", earlier, lines()}, {"b", c.at, lines(12)}} {
					commit, contributions := strings.Repeat(one.letter, 40), []any{}
					if c.exact {
						contributions = []any{object{"commit_hash": commit, "commit_timestamp": one.at + "Z"}}
					}
					id, _ := scanner.scan(t, recorded(t, "results", one.lines, with([]any{}, "ignores"), with(contributions, "contributions")), atCommit(commit, one.at))
					second = fmt.Sprint(s.Store.Reader.Scan.GetX(s.System(t), id).Stats["older_than_scan"])
				}
				wantList(t, name, scanner.findingsOf(t, mainRef), c.want)
				if older := second != "<nil>"; older != strings.Contains(c.want, "fixed") {
					t.Errorf("older than %s", second)
				}
			})
		})
	}
}

// What the scan of an older commit reports can make it fail, although a newer commit fixed it.
func TestScannerOlderCommitBlocks(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.block(t, &policiesv1.RemediationPolicy{
			Slug: "no-eval", Name: "No eval", Active: true,
			Filters: &policiesv1.RemediationPolicyFilters{Mode: "all", Conditions: []*policiesv1.RemediationPolicyCondition{{Type: "severity", Values: []string{"high"}, Mode: "include"}}},
			Actions: []*policiesv1.RemediationPolicyAction{{Type: "block"}},
		})
		slow := c.create(t, oldCommit)
		c.scan(t, recorded(t, "results", lines()), newCommit)
		answer := c.complete(t, slow, c.results(t, slow, recorded(t, "results")))
		if answer["app_block_override"] != true {
			t.Errorf("%v", answer)
		}
	})
}

// A report of an older commit is stored, and changes nothing that a newer one decided.
func TestUploadOfAnOlderCommit(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := func(results ...result) []byte { return sarifOf(t, run{Tool: "gosec", Results: results}) }
		early, late := []string{"commit", "c1", "commit_time", "2026-11-20T10:00:00+02:00"}, []string{"commit", "c2", "commit_time", "2026-11-20T09:00:00Z"}
		upload(t, s, "main", report(sqli), late...)
		answer := upload(t, s, "main", report(xss), early...)
		if answer.GetFixed() != 0 || answer.GetCreated() != 0 || !strings.Contains(strings.Join(answer.GetRuns()[0].GetWarnings(), " "), "older than that of scan 1") {
			t.Errorf("%v", answer)
		}
		wantList(t, "findings", newScanner(s).findingsOf(t, mainRef), "db.go:10 unresolved open", "web.go:20 fixed fixed")
		if answer = upload(t, s, "main", report(xss), late...); answer.GetFixed() != 1 || answer.GetReopened() != 1 {
			t.Errorf("the newer commit again: %v", answer)
		}
		refused := s.Do(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/reports?project=acme/web&ref=main&commit_time=yesterday", string(report()))
		if refused.Status != http.StatusBadRequest || !strings.Contains(refused.Body, "commit_time") {
			t.Errorf("%d %s", refused.Status, refused.Body)
		}
	})
}

// A diff scan searches what its branch changes. What an older commit of the branch changed is no longer there.
func TestScannerOlderCommitOfAPullRequest(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		slow := c.create(t, pull, oldCommit)
		c.scan(t, recorded(t, "results", lines(4), with([]any{}, "ignores"), with([]any{"lib/hash.py"}, "searched_paths")), pull, newCommit)
		c.complete(t, slow, c.results(t, slow, recorded(t, "results", lines(12), with([]any{}, "ignores"), with([]any{"app/run.py"}, "searched_paths"))))
		wantList(t, "findings", c.findingsOf(t, pullRef), "lib/hash.py:4 unresolved open", "app/run.py:12 fixed fixed")
	})
}
