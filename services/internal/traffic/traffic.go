// Package traffic makes long work on a node yield the CPUs to interactive requests.
package traffic

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// workSlice is how long work runs before it checks for interactive requests.
	workSlice = 200 * time.Microsecond
	// pollInterval is the time between two checks while it yields.
	pollInterval = time.Millisecond
	// maxYieldRatio limits the time spent yielding to this multiple of the time spent working, so that work always
	// makes progress.
	maxYieldRatio = 2
	// maxYield limits one yield, and the unused budget that is kept for later. Goroutines that work with this one wait
	// as well.
	maxYield = 25 * time.Millisecond
	// responseGrace is how long work keeps yielding after a request has ended, while its response is sent.
	responseGrace = 2 * time.Millisecond
	// recentWindow is how long after a yield the node counts as contended.
	recentWindow = 100 * time.Millisecond
)

// Calls counts the interactive requests in flight on this node. They must not wait for resources that long
// work holds. The zero value is ready to use; a nil *Calls never makes work yield.
type Calls struct {
	running atomic.Int64
	ended   atomic.Int64 // when the latest request ended, in nanoseconds since 1970
}

// Begin counts a request. Each Begin needs an End.
func (c *Calls) Begin() { c.running.Add(1) }

// End ends a request.
func (c *Calls) End() {
	c.ended.Store(time.Now().UnixNano())
	c.running.Add(-1)
}

// busy reports whether requests are in flight or their responses are being sent.
func (c *Calls) busy(now time.Time) bool {
	return c.running.Load() > 0 || now.UnixNano()-c.ended.Load() < int64(responseGrace)
}

// Work is long work in one goroutine.
type Work struct {
	calls    *Calls
	since    time.Time
	budget   time.Duration // how long it may still yield
	lastBusy time.Time     // when requests were last in flight
}

// Beside begins long work that runs concurrently with these requests and yields to them.
func (c *Calls) Beside() *Work { return &Work{calls: c, since: time.Now()} }

// Resume excludes the time until now from the work, because the goroutine was waiting.
func (w *Work) Resume() { w.since = time.Now() }

// Yield sleeps while interactive requests are in flight. In total it sleeps at most maxYieldRatio times as long as
// the work took, and it keeps at most maxYield for later. Call it often, between short steps. It returns when ctx
// ends.
func (w *Work) Yield(ctx context.Context) {
	if w.calls == nil {
		return
	}
	now := time.Now()
	worked := now.Sub(w.since)
	if worked < workSlice {
		return
	}
	w.budget = min(w.budget+maxYieldRatio*worked, maxYield)
	for w.calls.busy(now) && w.budget > 0 && ctx.Err() == nil {
		w.lastBusy = now
		time.Sleep(pollInterval)
		w.budget -= time.Since(w.lastBusy)
		now = time.Now()
	}
	w.since = now
}

// Crowded reports whether the work has recently yielded to requests. Its next uninterruptible step should then be
// short.
func (w *Work) Crowded() bool { return time.Since(w.lastBusy) < recentWindow }
