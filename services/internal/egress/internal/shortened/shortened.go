// Package shortened lets tests shorten the timeouts of outbound calls. Only package egress and its test helpers can
// import it, so a server always keeps its timeouts.
package shortened

import (
	"sync/atomic"
	"time"
)

var most atomic.Int64 // nanoseconds; 0 keeps the limits

// Set caps all timeouts until the next call. 0 removes the cap.
func Set(d time.Duration) { most.Store(int64(d)) }

// Most returns the timeout, or the cap of a test if that is shorter.
func Most(limit time.Duration) time.Duration {
	if d := time.Duration(most.Load()); d > 0 {
		return min(limit, d)
	}
	return limit
}
