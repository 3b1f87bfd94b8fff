package chain_test

import (
	"io"
	"testing"

	"github.com/palisade/palisade/services/internal/chain"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// BenchmarkUnary is what a call with an API token costs beside its handler: in process as each HTTP request does, and
// over a (memory) connection.
func BenchmarkUnary(b *testing.B) {
	f := newFixture(b, func(d *chain.Deps) {
		d.RateLimit = 1e9
		var err error
		d.Log, err = telemetry.NewLogger(io.Discard, "json", "info")
		must(b, err)
	})
	for _, transport := range []string{"http", "grpc"} {
		b.Run(transport, func(b *testing.B) {
			ctx := as(b.Context(), f.admin)
			b.ReportAllocs()
			for b.Loop() {
				must(b, getProject(ctx, f.conns[transport], "acme"))
			}
		})
	}
}
