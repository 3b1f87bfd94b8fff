package main

import (
	"context"
	"os"
	"path/filepath"
)

// profile writes CPU and allocation profiles of the server under a load, for go tool pprof. It is not part of the
// measurement, because profiling has a cost.
func (b *bench) profile(name string, load func() error) error {
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
	b.progress("profile: %s", name)
	return b.server.profiled(filepath.Join(dir, name+".pprof"), load)
}

// profilePages requests the same pages as the measurement.
func (b *bench) profilePages(ctx context.Context, name string, t *target) error {
	return b.profile(name, func() error {
		_, _, err := t.run(ctx, 3*t.requests)
		return err
	})
}

// profileUploads uploads a report of three times the size, twice.
func (b *bench) profileUploads(ctx context.Context) error {
	if b.profiles == "" {
		return nil
	}
	report, err := makeReport(1<<32, 3*b.results)
	if err != nil {
		return err
	}
	for _, name := range []string{"upload-new", "upload-again"} {
		err := b.profile(name, func() error {
			_, err := b.client.upload(ctx, "bench/profiled", "main", "", report)
			return err
		})
		if err != nil {
			return err
		}
	}
	b.stored += 3 * b.results
	return nil
}
