package audit

import "time"

// RetryOwedAfter shortens the time after which entries that are owed are tried again.
func RetryOwedAfter(d time.Duration) { owedInterval = d }

// HoldOwed keeps what is owed from being written until release is called.
func (t *Trail) HoldOwed() (release func()) {
	t.owed.writing.Lock()
	return t.owed.writing.Unlock
}
