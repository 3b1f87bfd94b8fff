// Package testrun tells tests what the run that they are part of asks for.
package testrun

import "os"

// large is set by `make test-large`, for sizes that take minutes. Every other run proves the same with less, or not at all.
var large = os.Getenv("PALISADE_TEST_LARGE") != ""

// Size returns the second size when the large tests run, otherwise the first. A test calls it itself, by which `make test-large`
// finds it.
func Size(ordinary, full int) int {
	if large {
		return full
	}
	return ordinary
}
