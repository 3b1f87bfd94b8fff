package storetest

import (
	"strconv"
	"syscall"
	"testing"
)

// SmallDisk returns a directory on its own file system of this size. Only root can mount one; otherwise the test is
// skipped.
func SmallDisk(t testing.TB, bytes int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.FormatInt(bytes, 10)+",mode=0700"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}
