package main

import (
	"context"
	"os"
	"path/filepath"
)

// profile writes CPU and allocation profiles of the server under each load, for go tool pprof. It is no part of the
// measurement: profiling costs, too.
func (b *bench) profile(ctx context.Context, page, rpc *target) error {
	if b.profiles == "" {
		return nil
	}
	dir, err := filepath.Abs(b.profiles)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	report, err := makeReport(1<<32, 3*b.results)
	if err != nil {
		return err
	}
	pages := func(t *target) func() error {
		return func() error {
			_, _, err := t.run(ctx, 3*t.requests)
			return err
		}
	}
	upload := func() error {
		_, err := b.client.upload(ctx, "bench/profiled", "main", "", report)
		return err
	}
	for _, p := range []struct {
		name string
		load func() error
	}{
		{"page-http.pprof", pages(page)}, {"page-grpc.pprof", pages(rpc)}, {"upload-new.pprof", upload}, {"upload-again.pprof", upload},
	} {
		b.progress("profile: %s", p.name)
		if err := b.server.profiled(filepath.Join(dir, p.name), p.load); err != nil {
			return err
		}
	}
	return nil
}
