//go:build linux || darwin

package spool

import "syscall"

// freeBytes returns how many bytes this process may still write to the file system of dir.
func freeBytes(dir string) (int64, bool) {
	var found syscall.Statfs_t
	if err := syscall.Statfs(dir, &found); err != nil {
		return 0, false
	}
	return int64(found.Bavail) * int64(found.Bsize), true //nolint:unconvert // the types differ between systems
}
