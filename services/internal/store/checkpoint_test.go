package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/testrun"
)

// TestCheckpointAside commits long transactions back to back. Background checkpoints move the log into the file,
// and the log restarts now and then. Without further writes all of the log is moved, and the next short transaction
// truncates it.
func TestCheckpointAside(t *testing.T) {
	testrun.Deep(t) // waits for checkpoints of the disk
	t.Parallel()
	o := Options{DataDir: t.TempDir()}
	st := openMigrated(t, o)
	if _, err := st.writerDB.ExecContext(t.Context(), "CREATE TABLE filler (content BLOB)"); err != nil {
		t.Fatal(err)
	}
	const mebibyte = 1 << 20
	write := func(mebibytes int, takes time.Duration) {
		t.Helper()
		tx, err := st.writerDB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for range mebibytes {
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO filler VALUES (zeroblob(?))", mebibyte); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(takes)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	var pages, moved int64
	look := func() {
		t.Helper()
		var busy int
		if err := st.readerDB.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &pages, &moved); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		before := pages
		write(80, longTransaction)
		if look(); pages < before {
			break
		}
	}
	if pages >= 20*80*mebibyte/(16<<10) {
		t.Errorf("after 20 transactions the log has %d pages, and has not restarted", pages)
	}
	for deadline := time.Now().Add(time.Minute); st.checkpoints.isDeferred(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the checkpoint does not end")
		}
	}
	if look(); moved < pages {
		t.Errorf("of %d pages in the log only %d are in the file", pages, moved)
	}
	write(1, 0)
	if look(); pages > 100 {
		t.Errorf("a short transaction left %d pages in the log", pages)
	}
	log, err := os.Stat(filepath.Join(o.DataDir, SQLiteFile+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if log.Size() > 65*mebibyte {
		t.Errorf("the log keeps %d MiB", log.Size()/mebibyte)
	}
	for range 40 { // short transactions: SQLite's own checkpoints move them
		write(1, 0)
	}
	if look(); pages > 1300 {
		t.Errorf("short transactions left %d pages in the log", pages)
	}
}
