package main

import (
	"bytes"
	"testing"

	"github.com/palisade/palisade/services/scans/sarif"
)

// read returns the results of a report and the number of skipped ones.
func read(t *testing.T, report []byte) (results []sarif.Result, skipped int) {
	t.Helper()
	r, err := sarif.Open(t.Context(), bytes.NewReader(report), sarif.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	err = r.Results(t.Context(), func(result *sarif.Result) error {
		results = append(results, *result)
		return nil
	}, func(sarif.Skip) error {
		skipped++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return results, skipped
}

func TestReportIsWhatTheServerReads(t *testing.T) {
	const n = 1000
	report, err := makeReport(7, n)
	if err != nil {
		t.Fatal(err)
	}
	results, skipped := read(t, report)
	if len(results) != n || skipped != 0 {
		t.Fatalf("got %d results and %d skipped, want %d and 0", len(results), skipped, n)
	}
	severities, rules, suppressed := map[string]int{}, map[string]bool{}, 0
	for _, r := range results {
		severities[r.Severity]++
		rules[r.RuleID] = true
		if r.Suppressed {
			suppressed++
		}
		if r.Snippet == "" || r.Message == "" || len(r.Rule.CWENames) == 0 || len(r.Rule.OWASPNames) == 0 {
			t.Fatalf("a result lacks what a real one has: %+v", r)
		}
	}
	for _, severity := range []string{"low", "medium", "high", "critical"} {
		if severities[severity] < n/8 {
			t.Errorf("severity %s: got %d results of %d, want about a quarter", severity, severities[severity], n)
		}
	}
	if len(rules) < ruleCount*9/10 || suppressed != n/suppressedEvery {
		t.Errorf("got %d rules and %d suppressed results", len(rules), suppressed)
	}
}

func TestReportDependsOnItsSeedOnly(t *testing.T) {
	report := func(seed uint64) []byte {
		b, err := makeReport(seed, 50)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if !bytes.Equal(report(1), report(1)) {
		t.Error("the same seed gives two reports")
	}
	first, _ := read(t, report(1))
	second, _ := read(t, report(2))
	known := map[string]bool{}
	for _, r := range first {
		known[r.Snippet] = true
	}
	for _, r := range second {
		if known[r.Snippet] {
			t.Errorf("two seeds share the code %q", r.Snippet)
		}
	}
}
