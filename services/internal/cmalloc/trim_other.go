//go:build !cgo

package cmalloc

// Trim does nothing: there is no C in this program.
func Trim() {}
