//go:build !linux

package storetest

import "testing"

// SmallDisk skips the test: only Linux has it.
func SmallDisk(t testing.TB, _ int64) string {
	t.Helper()
	t.Skip("small file systems need Linux")
	return ""
}
