// Package traffic lets long work on a node leave the processors to callers who wait for a short answer.
package traffic

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// stint is how long work goes on before it looks whether anybody waits.
	stint = 200 * time.Microsecond
	// look is how long it lets pass before it looks again.
	look = 100 * time.Microsecond
	// share is how long it waits at most, as a multiple of the time that it has worked: so it never stands still.
	share = 2
	// longest is how long it waits at once: whoever it hands its results to, or gets them from, waits with it.
	longest = 5 * time.Millisecond
	// lately is how long calls that it met count.
	lately = 100 * time.Millisecond
)

// Calls are the short calls that a node is answering: such as wait for nothing that long work holds. The zero value has none, and a nil one never will.
type Calls struct{ running atomic.Int64 }

// Begin counts a call until End.
func (c *Calls) Begin() { c.running.Add(1) }

// End is what each Begin needs.
func (c *Calls) End() { c.running.Add(-1) }

// Work is one goroutine's long work beside the calls.
type Work struct {
	calls *Calls
	since time.Time
	met   time.Time // when calls were running
}

// Beside begins long work.
func (c *Calls) Beside() *Work { return &Work{calls: c, since: time.Now()} }

// Resume says that the goroutine has been waiting until now: that was no work.
func (w *Work) Resume() { w.since = time.Now() }

// Yield waits while calls are running, if there was work since the last wait, and for no longer than twice as long as that
// took, nor than 5 ms. It is called often, between two small steps; a context that ends ends the wait.
func (w *Work) Yield(ctx context.Context) {
	if w.calls == nil {
		return
	}
	now := time.Now()
	worked := now.Sub(w.since)
	if worked < stint {
		return
	}
	for until := now.Add(min(share*worked, longest)); w.calls.running.Load() > 0 && now.Before(until) && ctx.Err() == nil; now = time.Now() {
		w.met = now
		time.Sleep(look)
	}
	w.since = now
}

// Crowded reports whether the work met calls lately: its next step, which nothing can interrupt, had better be short.
func (w *Work) Crowded() bool { return time.Since(w.met) < lately }
