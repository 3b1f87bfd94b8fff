//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAdvisoriesRegularFilesOnly: reading a FIFO would block, and a link may point out of the directory.
func TestAdvisoriesRegularFilesOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "a.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "b.json")); err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	i := &advisoryImport{std: streams{out: &told, err: &told}}
	err := i.run(t.Context(), os.DirFS(dir))
	if err == nil || !strings.Contains(err.Error(), "no regular .json files") || i.notRegular != 2 {
		t.Errorf("%v, %d skipped", err, i.notRegular)
	}
	if got := told.String(); !strings.Contains(got, "skipped a.json: not a regular file") || !strings.Contains(got, "skipped b.json") {
		t.Errorf("told %q", got)
	}
}
