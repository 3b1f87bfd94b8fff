// Package shortened lets tests have the time limits of outbound calls end sooner. Only package egress and its helpers
// of tests can import it, so a server always keeps the limits as they are.
package shortened

import (
	"sync/atomic"
	"time"
)

var most atomic.Int64 // nanoseconds; 0: limits stay as they are

// Set bounds all limits until it is called again; 0 lets them be as they are.
func Set(d time.Duration) { most.Store(int64(d)) }

// Most is a limit, or what tests want in its place.
func Most(limit time.Duration) time.Duration {
	if d := time.Duration(most.Load()); d > 0 {
		return min(limit, d)
	}
	return limit
}
