//go:build !cgo

package cmalloc

// Trim does nothing, because this build has no C code.
func Trim() {}
