package spool_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/storetest"
)

func open(t *testing.T, dir string, limits spool.Limits, refused func()) *spool.Spool {
	t.Helper()
	files, err := spool.Open(dir, limits, refused)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func of(t *testing.T, deployment int64) context.Context {
	return tenant.NewContext(t.Context(), deployment)
}

func receive(t *testing.T, space spool.Space) *spool.File {
	t.Helper()
	file, err := space.Receive("report")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func wantWritten(t *testing.T, w io.Writer, size int64) {
	t.Helper()
	if n, err := io.Copy(w, io.LimitReader(zeros{}, size)); err != nil || n != size {
		t.Fatalf("%d bytes of %d: %v", n, size, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func wantRefused(t *testing.T, err error, status int, text string) {
	t.Helper()
	reason := map[int]errorsv1.Reason{
		http.StatusTooManyRequests: errorsv1.Reason_REASON_RATE_LIMITED, http.StatusInsufficientStorage: errorsv1.Reason_REASON_STORAGE_FULL,
	}[status]
	err = apierr.Map(err)
	if err == nil || apierr.HTTPStatus(err) != status || !apierr.Is(err, reason) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %d %s with %q", err, status, reason, text)
	}
}

// TestQuota: bytes count from the write until the file is closed, for the deployment and the node.
func TestQuota(t *testing.T) {
	refused := 0
	files := open(t, t.TempDir(), spool.Limits{Node: 100, Deployment: 60}, func() { refused++ })
	first := receive(t, files.Of(of(t, 1)))
	wantWritten(t, first, 50)
	_, err := first.Write(make([]byte, 11))
	wantRefused(t, err, http.StatusTooManyRequests, "spool-quota-deployment")
	wantWritten(t, first, 10)
	_, err = files.Of(of(t, 1)).Receive("report")
	wantRefused(t, err, http.StatusTooManyRequests, "60 B")
	work, err := files.Of(of(t, 1)).Work("import")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := work.WriteAt(make([]byte, 30), 0); err != nil {
		t.Errorf("received files cannot be processed: %v", err)
	}
	other := receive(t, files.Of(of(t, 2)))
	wantWritten(t, other, 10)
	_, err = other.Write([]byte("x"))
	wantRefused(t, err, http.StatusTooManyRequests, "this node")
	if files.Used() != 100 || refused != 3 {
		t.Errorf("%d bytes, %d refusals", files.Used(), refused)
	}
	for _, file := range []*spool.File{first, work, other} {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		_ = file.Close() // a second Close releases nothing
	}
	if files.Used() != 0 {
		t.Errorf("%d bytes are left", files.Used())
	}
}

func TestNoLimits(t *testing.T) {
	var none *spool.Spool
	file := receive(t, none.Of(of(t, 1)))
	wantWritten(t, file, 10)
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"report-123", "envelope-9", "results-77", "import-1", "report-x", "other-1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := open(t, dir, spool.Limits{}, func() {})
	file := receive(t, files.Of(of(t, 1)))
	defer func() { _ = file.Close() }()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || left[0].Name() != "other-1" || left[1].Name() != "report-x" {
		t.Errorf("%v %v", left, err)
	}
}

// TestReserve: the reserve is checked before a file is created and while it is written. Uploads resume when there
// is space.
func TestReserve(t *testing.T) {
	const mebi = 1 << 20
	dir := storetest.SmallDisk(t, 32*mebi)
	disk := spool.Disk{Dirs: []string{dir}, Reserve: 16 * mebi}
	files := open(t, filepath.Join(dir, "spool"), spool.Limits{Disk: disk}, func() {})
	file := receive(t, files.Of(of(t, 1)))
	written, err := io.Copy(file, zeros{})
	wantRefused(t, err, http.StatusInsufficientStorage, "disk-reserve")
	if written < 8*mebi || written > 20*mebi {
		t.Errorf("%d bytes were written to a disk of 16 MiB", written)
	}
	if problem, full := disk.State(); !strings.Contains(problem, "nearly full") || full {
		t.Errorf("%q %t", problem, full)
	}
	_, err = files.Of(of(t, 2)).Receive("report")
	wantRefused(t, err, http.StatusInsufficientStorage, "disk-reserve")
	if _, err := file.Write([]byte("x")); err != nil { // one byte triggers no new check
		wantRefused(t, err, http.StatusInsufficientStorage, "disk-reserve")
	}
	fill := filepath.Join(dir, "fill")
	wantRefused(t, os.WriteFile(fill, make([]byte, 32*mebi), 0o600), http.StatusInsufficientStorage, "no room")
	if problem, full := disk.State(); !strings.Contains(problem, "the disk is full") || !full {
		t.Errorf("%q %t", problem, full)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(fill); err != nil {
		t.Error(err)
	}
	if problem, full := disk.State(); problem != "" || full || disk.Check(0) != nil {
		t.Errorf("%q %t", problem, full)
	}
	again := receive(t, files.Of(of(t, 1)))
	wantWritten(t, again, 10*mebi)
	_ = again.Close()
}

// TestGrowth: what the imports of received files will write counts before it is written, for all files together. Work
// on them uses that room.
func TestGrowth(t *testing.T) {
	const mebi = 1 << 20
	dir := storetest.SmallDisk(t, 64*mebi)
	unmoved := int64(0)
	files := open(t, filepath.Join(dir, "spool"), spool.Limits{
		Disk: spool.Disk{Dirs: []string{dir}, Reserve: 16 * mebi, Growth: 3}, Unmoved: func() int64 { return unmoved },
	}, func() {})
	first, second := receive(t, files.Of(of(t, 1))), receive(t, files.Of(of(t, 2)))
	wantWritten(t, first, 8*mebi)
	written, err := io.Copy(second, zeros{})
	wantRefused(t, err, http.StatusInsufficientStorage, "uploads in progress need")
	if written < 2*mebi || written > 5*mebi {
		t.Errorf("%d bytes were written beside 8 MiB that grow to 32 MiB, on a disk of 48 MiB", written)
	}
	work, err := files.Of(of(t, 1)).Work("import")
	if err != nil {
		t.Fatal(err)
	}
	wantWritten(t, work, 8*mebi)
	for _, file := range []*spool.File{first, second, work} {
		_ = file.Close()
	}
	if err := files.Of(of(t, 1)).Check(); err != nil {
		t.Error(err)
	}
	unmoved = 60 * mebi
	wantRefused(t, files.Of(of(t, 1)).Check(), http.StatusInsufficientStorage, "disk-reserve")
}

// TestRoom: on a full disk, deletes and then the next start get the room. Other work gets none of it.
func TestRoom(t *testing.T) {
	const mebi = 1 << 20
	dir := storetest.SmallDisk(t, 64*mebi)
	disk := spool.Disk{Dirs: []string{dir}, Reserve: 32 * mebi}
	room := spool.NewRoom(disk, filepath.Join(dir, "room"))
	want := func(step string, free int64, admitted bool) {
		t.Helper()
		if got, _ := disk.Free(); got != free*mebi {
			t.Errorf("%s: %d bytes are free, want %d MiB", step, got, free)
		}
		if err := room.Admit(t.Context()); (err == nil) != admitted {
			t.Errorf("%s: %v", step, err)
		}
		if err := room.Admit(spool.WithRoom(t.Context())); err != nil {
			t.Errorf("%s: a delete: %v", step, err)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(room.Keep())
	want("kept", 56, true)
	do(room.Use())
	want("not needed", 56, true)
	fill := filepath.Join(dir, "fill")
	_ = os.WriteFile(fill, make([]byte, 56*mebi), 0o600)
	want("full", 0, true) // the database itself refuses it
	do(room.Use())
	want("used by a delete", 6, false)
	do(room.Keep())
	want("still full", 6, false)
	do(room.Start())
	want("used by a start", 8, true)
	do(os.Truncate(fill, 44*mebi))
	do(room.Keep())
	want("kept for the next start", 18, true)
	do(os.Remove(fill))
	do(room.Keep())
	want("kept again", 56, true)
}
