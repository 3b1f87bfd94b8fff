package identity

import (
	"io"
	"net/http"
	"testing"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
)

// realServer starts Palisade as shipped, on an empty SQLite store.
func realServer(t *testing.T) *Server {
	t.Helper()
	cfg := config.Default()
	cfg.HTTP, cfg.GRPC, cfg.Metrics = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	cfg.Data, cfg.Deployment, cfg.BootstrapToken = t.TempDir(), "mall", "sgp_identity-test-token-identity-test-token"
	cfg.LogLevel, cfg.RateLimit = "error", 0
	running, err := services.Start(t.Context(), cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		running.Stop()
		if err := running.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &Server{Base: "http://" + running.Addresses().HTTP, Token: cfg.BootstrapToken, Deployment: cfg.Deployment, HTTP: http.DefaultClient}
}

// TestARealServer: the outcome of a correct server is counted correctly; a faulty server is simulated by a wrong truth.
func TestARealServer(t *testing.T) {
	server := realServer(t)
	cases := []struct {
		name string
		lie  func(*Plan)
		want Counts
	}{
		{"truth", func(*Plan) {}, Counts{}},
		{"a problem that is said to be another", func(p *Plan) {
			truth := p.After[0].Truth
			truth[1].Result, truth[2].Result = truth[2].Result, truth[1].Result
		}, Counts{WrongMerges: 2, AsNew: 2}},
		{"a problem that is said to be gone", func(p *Plan) { p.After[0].Truth[1] = Truth{State: Gone} }, Counts{WrongMerges: 1}},
		{"a problem that the report leaves out", func(p *Plan) {
			p.After[0].lose(func(i int) bool { return i == 1 })
		}, Counts{WrongCloses: 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			source := mall()
			source.Name = c.name
			plan := planOf(t, source, "same again", 1)
			c.lie(plan)
			outcome, err := plan.Run(t.Context(), server, testRandom(3))
			if err != nil {
				t.Fatal(err)
			}
			got := outcome.Counts
			if got.Findings != len(source.Report.Results) || got.Touched == 0 || c.want == (Counts{}) && got.Kept != got.Touched {
				t.Errorf("got %+v of %d results", got, len(source.Report.Results))
			}
			got.Findings, got.Touched, got.Kept, got.WrongDecisions = 0, 0, 0, 0
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestALostDecisionIsCounted: a decision that was changed between the two scans does not count as kept.
func TestALostDecisionIsCounted(t *testing.T) {
	server := realServer(t)
	plan := planOf(t, mall(), "same again", 1)
	problems, of, err := plan.begin(t.Context(), server, testRandom(3))
	if err != nil {
		t.Fatal(err)
	}
	if len(of) != len(plan.Before.Results) {
		t.Fatalf("%d of %d results became findings", len(of), len(plan.Before.Results))
	}
	decided := 0
	for _, p := range problems {
		if p.Decision == nil {
			continue
		}
		if decided++; decided == 1 {
			if err := server.Decide(t.Context(), p.Finding, Decision{"reopened", "changed my mind"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := server.Upload(t.Context(), plan.project(), plan.After[0].Report); err != nil {
		t.Fatal(err)
	}
	listed, err := server.List(t.Context(), plan.project())
	if err != nil {
		t.Fatal(err)
	}
	got, _ := Count(problems, plan.After[0].Truth, plan.After[0].Report, listed)
	want := Counts{Findings: len(problems), Touched: decided, Kept: decided - 1, WrongReopens: 1}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
