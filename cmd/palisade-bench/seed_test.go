package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSeed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := seed(t.Context(), dir, seedResults+1, t.Output()); err != nil {
		t.Fatal(err)
	}
	db := &database{dir: dir, drop: func() error { return nil }}
	if err := db.open(); err != nil {
		t.Fatal(err)
	}
	var findings, decorated int
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*), COUNT(autotriage_verdict) FROM findings").Scan(&findings, &decorated); err != nil {
		t.Fatal(err)
	}
	if findings != 2*seedResults || decorated == 0 {
		t.Errorf("got %d findings, %d with a verdict; want %d, some with one", findings, decorated, 2*seedResults)
	}
	if err := db.close(); err != nil {
		t.Fatal(err)
	}
}

// TestSeedKeepsOtherFiles tests that a store is never mixed with what the directory has already.
func TestSeedKeepsOtherFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "palisade.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := seed(t.Context(), dir, 1, t.Output()); err == nil || !strings.Contains(err.Error(), "want an empty directory") {
		t.Errorf("got error %v, want one about the directory", err)
	}
}
