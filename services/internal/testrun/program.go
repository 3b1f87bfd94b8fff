package testrun

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Program returns the path of the server's program, for tests of real processes. `make test` builds it once for all
// packages and names it in TESTRUN_PROGRAM. Without that variable, Program builds it in dir.
func Program(ctx context.Context, dir string) (path string, err error) {
	if given := os.Getenv("TESTRUN_PROGRAM"); given != "" {
		return given, nil
	}
	path = filepath.Join(dir, "palisade")
	return path, Build(ctx, ".", path)
}

// Build builds the server's program from the module that dir is in. -trimpath makes Go reuse what other builds have
// compiled; leaving out symbols halves the linking time.
func Build(ctx context.Context, dir, path string) error {
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", path,
		"github.com/palisade/palisade/cmd/palisade")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build in %s: %w\n%s", dir, err, out)
	}
	return nil
}
