package sarif_test

import (
	"context"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/scans/sarif"
)

// outcome is the outcome of reading a report.
type outcome struct {
	report  *sarif.Report
	results []*sarif.Result
	skips   []sarif.Skip
}

func readFile(t testing.TB, name string, opts ...sarif.Option) outcome {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	report, err := sarif.Open(context.Background(), f, sarif.Limits{}, opts...)
	if err != nil {
		t.Fatalf("open %s: %v", name, err)
	}
	return collect(t, report)
}

func collect(t testing.TB, report *sarif.Report) outcome {
	t.Helper()
	o := outcome{report: report}
	err := report.Results(context.Background(),
		func(r *sarif.Result) error { o.results = append(o.results, r); return nil },
		func(s sarif.Skip) error { o.skips = append(o.skips, s); return nil })
	if err != nil {
		t.Fatalf("results: %v", err)
	}
	want := 0
	for _, run := range report.Runs {
		want += run.Results
	}
	kept := map[[2]int]bool{} // a result may be several findings
	for _, r := range o.results {
		kept[[2]int{r.Run, r.Index}] = true
	}
	if got := len(kept) + len(o.skips); got != want {
		t.Fatalf("%d results kept and %d skipped, want %d together", len(kept), len(o.skips), want)
	}
	return o
}

// read reads a report from a string.
func read(t testing.TB, doc string, opts ...sarif.Option) outcome {
	t.Helper()
	report, err := sarif.Open(context.Background(), strings.NewReader(doc), sarif.Limits{}, opts...)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return collect(t, report)
}

// run wraps the members of one run into a report.
func run(members string) string { return `{"version":"2.1.0","runs":[{` + members + `}]}` }

// driver is a tool without rules and with the given results.
func driver(name, results string) string {
	return run(`"tool":{"driver":{"name":"` + name + `"}},"results":[` + results + `]`)
}

// only returns the one result of a report.
func only(t testing.TB, o outcome) *sarif.Result {
	t.Helper()
	if len(o.results) != 1 || len(o.skips) != 0 {
		t.Fatalf("%d results and skips %+v, want one result", len(o.results), o.skips)
	}
	return o.results[0]
}

func TestRealReportsAreCompletelyAccountedFor(t *testing.T) {
	for _, c := range []struct {
		file    string
		results int
		tool    sarif.Tool
	}{
		{"gosec-pocketbase-v0.22.8.sarif", 309, sarif.Tool{Name: "gosec", Slug: "gosec", Version: "dev"}},
		{"eslint-security-express-jquery.sarif", 729, sarif.Tool{Name: "ESLint", Slug: "eslint", Version: "9.39.5"}},
		{"staticcheck-grpc-gateway-v1.16.0.sarif", 111, sarif.Tool{Name: "Staticcheck", Slug: "staticcheck", Version: "2026.2.2"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			o := readFile(t, c.file)
			if len(o.results) != c.results || len(o.skips) != 0 {
				t.Errorf("%d results and %d skips, want %d and none", len(o.results), len(o.skips), c.results)
			}
			first := o.report.Runs[0]
			if first.Tool != c.tool || first.Rejected != "" || first.Product != vocabulary.SAST {
				t.Errorf("run is %+v of %q, rejected %q", first.Tool, first.Product, first.Rejected)
			}
			for i, r := range o.results {
				if r.Index != i || r.Message == "" || r.Path == "" || r.Line < 1 || r.Column < 1 || r.EndLine < r.Line || r.Rule.Stub {
					t.Fatalf("result %d is %+v", i, r)
				}
			}
		})
	}
}

// Every result gets its own identity, and reading again gives the same identities.
func TestRealReportsHaveStableIdentities(t *testing.T) {
	for _, file := range []string{"gosec-pocketbase-v0.22.8.sarif", "eslint-security-express-jquery.sarif", "staticcheck-grpc-gateway-v1.16.0.sarif"} {
		identities := func() map[string]bool {
			o := readFile(t, file)
			a := identity.NewAssigner()
			seen := map[string]bool{}
			for _, r := range o.results {
				id := a.Assign(o.report.Runs[r.Run].Tool.Slug, identity.Text{
					Rule: r.RuleID, Path: r.Path, MatchBasedID: r.MatchBasedID,
					ToolFingerprint: r.ToolFingerprint, Snippet: r.Snippet, Message: r.Message,
				})
				if seen[id.Fingerprint] {
					t.Errorf("%s: result %d has the fingerprint of another", file, r.Index)
				}
				seen[id.Fingerprint] = true
			}
			return seen
		}
		if !maps.Equal(identities(), identities()) {
			t.Errorf("%s: identities change from reading to reading", file)
		}
	}
}
