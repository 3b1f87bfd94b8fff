package testrun

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Program returns the path of the server's program, for tests of real processes. `make test` builds it once for all
// packages and names it in TESTRUN_PROGRAM; without that, it is built into a directory.
func Program(ctx context.Context, dir string) (path string, err error) {
	if given := os.Getenv("TESTRUN_PROGRAM"); given != "" {
		return given, nil
	}
	path = filepath.Join(dir, "palisade")
	return path, Build(ctx, ".", path)
}

// Build builds the server's program from the module that a directory is in. Without the directory in what is compiled,
// Go takes what other builds have compiled, and without symbols it links in half the time.
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
