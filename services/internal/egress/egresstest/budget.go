package egresstest

import (
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/egress/internal/shortened"
)

// grace is how much longer than its budget a call may take on a busy machine.
const grace = 10 * time.Second

// Shorten limits all outbound calls of the process until the test ends. Existing guards keep the timeout of their TLS
// handshakes.
func Shorten(t testing.TB, most time.Duration) {
	t.Helper()
	shortened.Set(most)
	t.Cleanup(func() { shortened.Set(0) })
}

// Within runs a call, requires that it ends soon after its budget, and returns its error.
func Within(t testing.TB, budget time.Duration, call func() error) error {
	t.Helper()
	done := make(chan error, 1)
	begun := time.Now()
	go func() { done <- call() }()
	select {
	case err := <-done:
		t.Logf("ended after %s: %v", time.Since(begun).Round(time.Millisecond), err)
		return err
	case <-time.After(budget + grace):
		t.Fatalf("the call still waits %s after its budget of %s", grace, budget)
		return nil
	}
}
