package scans_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scancoverage"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scans"
)

// wantClosed uploads a report to main.
func wantClosed(t *testing.T, what string, s *apitest.Server, report []byte, fixed, removed int32, query ...string) {
	t.Helper()
	if r := upload(t, s, "main", report, query...); r.GetFixed() != fixed || r.GetRemoved() != removed {
		t.Errorf("%s: %d fixed and %d removed, want %d and %d", what, r.GetFixed(), r.GetRemoved(), fixed, removed)
	}
}

// A tool that lists all its rules shows which rules were not run any more. Their findings are removed, not fixed.
func TestRuleThatIsNotRunAnyMore(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		catalogue := []declared{{ID: "sqli"}, {ID: "xss"}, {ID: "md5"}, {ID: "other"}}
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Rules: catalogue, Results: []result{sqli, xss, weak}}))
		wantClosed(t, "no catalogue", s, sarifOf(t, run{Tool: "gosec", Results: []result{sqli, weak}}), 1, 0)
		wantClosed(t, "a smaller catalogue", s, sarifOf(t, run{Tool: "gosec", Rules: []declared{{ID: "md5"}, {ID: "other"}}}), 1, 1)
		want := []string{"fixed: gone from the report", "fixed: gone from the report: rule ran", "removed: its rule was not run any more"}
		if got := reasons(t, s); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		if body := s.Get(t, "/api/v1/deployments/acme/findings"); strings.Contains(body, `"rule_name":"sqli"`) {
			t.Errorf("a removed finding is listed: %s", body)
		}
		wantCounts(t, "the rule is back", upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Rules: catalogue, Results: []result{sqli}})), [6]int32{0, 0, 0, 1, 0, 0})
		if last := reasons(t, s); !strings.HasPrefix(last[3], "reopened: seen again after it was removed on 20") || !strings.HasSuffix(last[3], " in scan 3") {
			t.Errorf("event %q", last[3])
		}
	})
}

// A tool that lists all files shows which files are gone. The first report without a file may be a partial scan.
func TestFileThatIsNotThereAnyMore(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		both := sarifOf(t, run{Tool: "gosec", Files: targets("db.go", "web.go"), Results: []result{sqli, xss}})
		upload(t, s, "main", both, "commit", "c1")
		web := sarifOf(t, run{Tool: "gosec", Files: targets("web.go"), Results: []result{xss}})
		wantClosed(t, "left out once", s, web, 0, 0, "commit", "c2")
		for range 3 {
			wantClosed(t, "the same upload again", s, web, 0, 0, "commit", "c2")
		}
		wantClosed(t, "a failed run", s, sarifOf(t, run{Tool: "gosec", Failed: true, Files: targets("web.go")}), 0, 0, "commit", "c3")
		wantClosed(t, "left out twice", s, web, 0, 1, "commit", "c4")
		wantClosed(t, "once more", s, web, 0, 0, "commit", "c5")
		if got := reasons(t, s); !slices.Equal(got, []string{"removed: its file is missing from two reports: db.go"}) {
			t.Errorf("events %q", got)
		}
		wantCounts(t, "it is back", upload(t, s, "main", both, "commit", "c6"), [6]int32{0, 0, 1, 1, 0, 0})
		wantClosed(t, "fixed there", s, sarifOf(t, run{Tool: "gosec", Files: targets("db.go", "web.go"), Results: []result{xss}}), 1, 0, "commit", "c7")
	})
}

// Some files are listed without a role. A file without results shows that the list has not only files with results.
func TestPartialCoverage(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		files := []artifact{{Path: "db.go"}, {Path: "web.go"}, {Path: "hash.go"}}
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Files: files, Results: []result{sqli, xss, weak}}))
		part := upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Files: files[:2], Results: []result{xss}}))
		if part.GetFixed() != 1 || part.GetRemoved() != 0 || part.GetRuns()[0].GetCoverage() != "files" {
			t.Errorf("%v", part)
		}
		if got := reasons(t, s); !slices.Equal(got, []string{"fixed: gone from db.go: file was scanned"}) {
			t.Errorf("events %q", got)
		}
	})
}

// Findings in files that could not be scanned are kept, while the rest of the run counts.
func TestFilesThatFailed(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{sqli, xss}}))
		wantClosed(t, "one file failed", s, sarifOf(t, run{Tool: "gosec", FailedFiles: []string{"db.go"}}), 1, 0)
		want := []string{"refs/heads/main  unresolved open", "refs/heads/main  fixed fixed"}
		if got := statuses(t, s); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		wantClosed(t, "the run failed", s, sarifOf(t, run{Tool: "gosec", Failed: true, FailedFiles: []string{"web.go"}}), 0, 0)
	})
}

// A failed run does not prove that a finding left its file: the same code elsewhere is another finding, without the
// decision.
func TestFailedRunMovesNothing(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		there := query
		there.File = "store/other.go"
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{query}}))
		ignore(t, s, "sqli")
		wantCounts(t, "the run failed", upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Failed: true, Results: []result{there}})), [6]int32{1, 0, 0, 0, 0, 0})
		wantCounts(t, "both", upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{there, query}})), [6]int32{0, 0, 2, 0, 0, 0})
		want := []string{"refs/heads/main  unresolved ignored", "refs/heads/main  unresolved open"}
		if got := statuses(t, s); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// The coverage of each scan is stored. Old ones are deleted, except for the newest of each analysis.
func TestCoveragesAreKept(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ranAtStart(t, s, "purge_scan_coverages")
		report := sarifOf(t, run{Tool: "gosec", Files: targets("db.go"), Results: []result{sqli}}, run{Tool: "eslint", Results: []result{xss}})
		upload(t, s, "main", report)
		upload(t, s, "main", report)
		ctx := s.System(t)
		if n := s.Store.Reader.ScanCoverage.Query().CountX(ctx); n != 4 {
			t.Fatalf("%d coverages, want 4", n)
		}
		err := s.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE scan_coverages SET at = 1")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := scans.PurgeCoverages(ctx, s.Store, time.Now()); err != nil || n != 2 {
			t.Errorf("%d coverages were deleted, %v; want 2", n, err)
		}
		var scans []int64
		for _, row := range s.Store.Reader.ScanCoverage.Query().Order(ent.Asc(scancoverage.FieldID)).AllX(ctx) {
			scans = append(scans, row.ScanID)
		}
		if !slices.Equal(scans, []int64{2, 2}) {
			t.Errorf("coverages of scans %v are left, want those of scan 2", scans)
		}
	})
}

// A failed run reports nothing, so the coverage of the successful one before is kept. Rows of earlier versions do not
// say what they report; any newer one replaces them.
func TestCoverageBeforeAFailureIsKept(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ranAtStart(t, s, "purge_scan_coverages")
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{sqli}}))
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Failed: true}))
		ctx := s.System(t)
		left := func() (scans []int64) {
			for _, row := range s.Store.Reader.ScanCoverage.Query().Order(ent.Asc(scancoverage.FieldID)).AllX(ctx) {
				scans = append(scans, row.ScanID)
			}
			return scans
		}
		purge := func(change string) {
			err := s.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
				_, err := tx.ExecContext(ctx, "UPDATE scan_coverages SET "+change)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := scans.PurgeCoverages(ctx, s.Store, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if purge("at = 1"); !slices.Equal(left(), []int64{1, 2}) {
			t.Errorf("after a failure, coverages of scans %v are left", left())
		}
		if purge("products = NULL WHERE scan_id = 1"); !slices.Equal(left(), []int64{2}) {
			t.Errorf("of an earlier version, coverages of scans %v are left", left())
		}
	})
}
