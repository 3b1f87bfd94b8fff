// Package testrun tells tests what the run that they are part of asks for, by variables that servers do not take for
// theirs.
package testrun

import "os"

// large is set by `make test-large`, for sizes that take minutes. Every other run shows the same with less.
var large = os.Getenv("TESTRUN_LARGE") != ""

// Size returns the second size when the large tests run, otherwise the first. A test calls it in its own body, where
// `make test-large` looks for it.
func Size(ordinary, full int) int {
	if large {
		return full
	}
	return ordinary
}
