//go:build !linux

package storetest

import "testing"

// SmallDisk is a directory that is a file system of so many bytes. It is made on Linux only; elsewhere the test is
// skipped.
func SmallDisk(t testing.TB, _ int64) string {
	t.Helper()
	t.Skip("small file systems are made on Linux only")
	return ""
}
