package chain_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/palisade/palisade/services/internal/chain"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// BenchmarkUnary measures a call with an API token without its handler: in process, as for HTTP requests, and over a
// memory connection; with the access log in a file, and without.
func BenchmarkUnary(b *testing.B) {
	for _, level := range []string{"info", "error"} {
		file, err := os.Create(filepath.Join(b.TempDir(), "log"))
		must(b, err)
		lines := telemetry.NewLogBuffer(file)
		lines.StartBuffering()
		f := newFixture(b, func(d *chain.Deps) {
			d.RateLimit = 1e9
			var err error
			d.Log, err = telemetry.NewLogger(lines, "text", level)
			must(b, err)
		})
		for _, transport := range []string{"http", "grpc"} {
			b.Run(transport+"/"+level, func(b *testing.B) {
				ctx := as(b.Context(), f.admin)
				b.ReportAllocs()
				for b.Loop() {
					must(b, getProject(ctx, f.conns[transport], "acme"))
				}
			})
		}
		must(b, errors.Join(lines.StopBuffering(), file.Close()))
	}
}
