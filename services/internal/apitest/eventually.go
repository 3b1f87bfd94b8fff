package apitest

import (
	"testing"
	"time"
)

// patience is for a busy machine: no test needs a tenth of it when all is well.
const patience = 5 * time.Minute

// Eventually asks until the answer is yes: what happens in the background has its own time.
func Eventually(t testing.TB, what string, yes func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !yes(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
