// Package testrun reads the test settings of a run, from variables that servers ignore.
package testrun

import (
	"os"
	"testing"
)

// deep is set by `make test-deep`, which is part of `make check-deep`.
var deep = os.Getenv("TESTRUN_DEEP") == "yes"

// Deep skips a test that depends on the machine or takes minutes, unless the deep tests run. Such a test kills
// processes, fails databases over, waits for leases or deadlines, measures memory or a neighbour's latency, fills a
// disk, installs programs, builds earlier versions, or walks all plans. It calls Deep in the first line of its own
// body, where `make test-deep` looks for it, with the reason in a comment.
func Deep(t testing.TB) {
	t.Helper()
	if !deep {
		t.Skip("deep: make test-deep runs it, or TESTRUN_DEEP=yes")
	}
}

// Size returns full when the deep tests run, otherwise ordinary. A test must call it in its own body, where `make
// test-deep` looks for it.
func Size(ordinary, full int) int {
	if deep {
		return full
	}
	return ordinary
}
