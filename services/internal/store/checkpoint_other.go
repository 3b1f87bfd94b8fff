//go:build !linux

package store

// atLowPriority runs fn. Only Linux has priorities per thread.
func atLowPriority(fn func() error) error { return fn() }
