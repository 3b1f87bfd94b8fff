// Package testrun reads the test settings of a run, from variables that servers ignore.
package testrun

import (
	"os"
	"testing"
)

// large is set by `make test-large`, for sizes that take minutes. Every other run tests the same with smaller sizes.
var large = os.Getenv("TESTRUN_LARGE") != ""

// Size returns full when the large tests run, otherwise ordinary. A test must call it in its own body, where `make
// test-large` looks for it.
func Size(ordinary, full int) int {
	if large {
		return full
	}
	return ordinary
}

// OnlyLarge skips a test that takes minutes, such as one of several processes or of very many rows, unless the large
// tests run. A test must call it in its own body, where `make test-large` looks for it.
func OnlyLarge(t testing.TB) {
	t.Helper()
	if !large {
		t.Skip("takes minutes: make test-large runs it")
	}
}
