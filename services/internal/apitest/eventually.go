package apitest

import (
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/store"
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

// Receive returns the next value of a channel that a goroutine of the test fills.
func Receive[T any](t testing.TB, what string, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(timeout):
		t.Fatalf("not within %s: %s", timeout, what)
	}
	return value
}

// WaitForLock returns when a connection waits for a lock in a database on PostgreSQL.
func WaitForLock(t testing.TB, st *store.Store) {
	t.Helper()
	Eventually(t, "a connection waits for a lock", func() bool {
		waiting := 0
		err := st.Pools()["main"].QueryRowContext(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		return waiting > 0
	})
}
