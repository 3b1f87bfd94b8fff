package dbcopy

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/store"
)

// TestInstallBesideAStrayLog: a stale log of a killed server must not be applied to the restored database.
func TestInstallBesideAStrayLog(t *testing.T) {
	t.Parallel()
	dataDir := t.TempDir()
	path, dir := filepath.Join(dataDir, store.SQLiteFile), filepath.Join(dataDir, "staged")
	write := func(path, text string) {
		t.Helper()
		db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL")
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		for _, statement := range []string{"CREATE TABLE t (x TEXT)", "INSERT INTO t VALUES ('" + text + "')"} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if text == "lost" { // like after a killed server: the file has no data yet
			log, err := os.ReadFile(path + "-wal")
			if err == nil {
				err = os.WriteFile(filepath.Join(dataDir, store.SQLiteFile+"-wal"), log, 0o600)
			}
			if err != nil || len(log) == 0 {
				t.Fatalf("%d bytes, %v", len(log), err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(t.TempDir(), store.SQLiteFile), "lost")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, store.SQLiteFile), "restored")
	now := time.Now()
	if _, err := Install(t.Context(), dir, path, now); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log is still there: %v", err)
	}
	if _, err := os.Stat(path + ".before-restore-" + now.UTC().Format("20060102T150405Z") + "-wal"); err != nil {
		t.Error(err)
	}
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var got string
	if err := db.QueryRowContext(t.Context(), "SELECT x FROM t").Scan(&got); err != nil || got != "restored" {
		t.Errorf("got %q, %v", got, err)
	}
}
