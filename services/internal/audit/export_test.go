package audit

import "time"

// SetRetryInterval shortens the interval between retries of pending entries.
func SetRetryInterval(d time.Duration) { retryInterval = d }

// HoldPending keeps pending entries from being written until release is called.
func (t *Trail) HoldPending() (release func()) {
	t.pending.writing.Lock()
	return t.pending.writing.Unlock
}
