// Package testrun tells tests what the run that they are part of asks for.
package testrun

import (
	"os"
	"testing"
)

// large is set by `make test-large`, for sizes that take minutes. Every other run proves the same with less, or not at all.
var large = os.Getenv("PALISADE_TEST_LARGE") != ""

// Size returns the second size when the large tests run, otherwise the first.
func Size(ordinary, full int) int {
	if large {
		return full
	}
	return ordinary
}

// OnlyLarge skips a test unless the large tests run: for what a small size cannot show.
func OnlyLarge(t testing.TB) {
	t.Helper()
	if !large {
		t.Skip("one of the large tests (make test-large)")
	}
}
