//go:build !linux

package store

// unhurried runs fn. Only Linux gives threads priorities of their own.
func unhurried(fn func() error) error { return fn() }
