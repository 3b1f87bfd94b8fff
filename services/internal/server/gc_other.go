//go:build !linux

package server

// dropProgram does nothing outside Linux.
func dropProgram() error { return nil }
