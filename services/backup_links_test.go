package services_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/newname/nolinks"
)

// Backup and restore work on a volume without hard links, and replace no file.
func TestBackupWithoutHardLinks(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	apitest.StartConfigured(t, cfg)
	key, err := os.ReadFile(cfg.KeyPath())
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range nolinks.Errors {
		file, other := filepath.Join(t.TempDir(), "backup.db"), cfg
		other.Data = t.TempDir()
		if err := os.WriteFile(other.KeyPath(), key, 0o600); err != nil {
			t.Fatal(err)
		}
		backUp := func() error {
			return nolinks.Run(t, answer, func() error {
				_, err := services.Backup(t.Context(), cfg, file, func(int64, int64) {})
				return err
			})
		}
		restore := func(force bool) (report services.RestoreReport, err error) {
			err = nolinks.Run(t, answer, func() (err error) {
				report, err = services.Restore(t.Context(), other, services.RestoreRequest{File: file, Force: force}, func(string, int64) {})
				return err
			})
			return report, err
		}
		if err := backUp(); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		if err := backUp(); err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("%s: a second backup: %v", answer, err)
		}
		if report, err := restore(false); err != nil || !report.Restored || report.Kept != "" {
			t.Fatalf("%s: %+v, %v", answer, report, err)
		}
		report, err := restore(true)
		if err != nil || !report.Restored {
			t.Fatalf("%s: with force: %+v, %v", answer, report, err)
		}
		for _, path := range []string{report.Kept, other.SQLitePath()} {
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Errorf("%s: %s: %v", answer, path, err)
			}
		}
	}
}
