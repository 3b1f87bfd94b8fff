package backtest_test

import (
	"os"
	"testing"
	"time"

	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/scans/backtest"
)

// BenchmarkReplay replays 90 days of a store that `palisade-bench seed` made, whose directory is in BENCH_STORE. One
// policy applies to each finding, so that no scan is left out.
func BenchmarkReplay(b *testing.B) {
	dir := os.Getenv("BENCH_STORE")
	if dir == "" {
		b.Skip("BENCH_STORE is not set")
	}
	st, err := store.Open(b.Context(), store.Options{DataDir: dir})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	ctx := tenant.NewContext(b.Context(), 1)
	block := []*policiesv1.RemediationPolicyAction{{Type: remediation.ActionBlock}}
	policies, err := remediation.CompileActive([]*policiesv1.RemediationPolicy{
		{Slug: "new", Active: true, Actions: block, Filters: &policiesv1.RemediationPolicyFilters{
			Mode: remediation.ModeAll, Conditions: []*policiesv1.RemediationPolicyCondition{{Type: "finding_state", Values: []string{"new"}}},
		}},
		{Slug: "all", Active: true, Actions: block, Filters: &policiesv1.RemediationPolicyFilters{Mode: remediation.ModeAll}},
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		now, hits := time.Now(), 0
		in := backtest.Input{Policies: policies, From: store.Micros(now.AddDate(0, 0, -90)), To: store.Micros(now)}
		summary, err := backtest.Replay(ctx, st.Reader, in, func(*backtest.Hit) { hits++ }, func(*backtest.Project) {})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(summary.Scans), "scans")
		b.ReportMetric(float64(summary.Findings), "findings")
		b.ReportMetric(float64(hits), "hits")
	}
}
