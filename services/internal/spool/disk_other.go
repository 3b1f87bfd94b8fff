//go:build !linux && !darwin

package spool

// freeBytes is not implemented on this system. The reserve is not enforced, and only a full disk is noticed.
func freeBytes(string) (int64, bool) { return 0, false }
