package apitest

import (
	"testing"
	"time"
)

// timeout is generous for a busy machine. Tests normally need less than a tenth of it.
const timeout = 5 * time.Minute

// Eventually polls until yes returns true, for work in the background.
func Eventually(t testing.TB, what string, yes func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(timeout); !yes(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %s: %s", timeout, what)
		}
	}
}
