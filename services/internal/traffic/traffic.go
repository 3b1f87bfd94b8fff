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
	look = time.Millisecond
	// share is how long it may wait, as a multiple of the time that it has worked: so it never stands still.
	share = 2
	// longest is how long it waits for one call after another, however long it has worked before: whoever it hands its
	// results to, or gets them from, waits with it.
	longest = 25 * time.Millisecond
	// after is for how long it waits for an answer to be sent.
	after = 2 * time.Millisecond
	// lately is how long calls that it met count.
	lately = 100 * time.Millisecond
)

// Calls are the short calls that a node is answering: such as wait for nothing that long work holds. The zero value has
// none, and a nil one never will.
type Calls struct {
	running atomic.Int64
	ended   atomic.Int64 // when the latest did, in nanoseconds of Unix time
}

// Begin counts a call until End.
func (c *Calls) Begin() { c.running.Add(1) }

// End is what each Begin needs.
func (c *Calls) End() {
	c.ended.Store(time.Now().UnixNano())
	c.running.Add(-1)
}

// wait reports whether calls are running, or have just ended: their answers are on the way then.
func (c *Calls) wait(now time.Time) bool {
	return c.running.Load() > 0 || now.UnixNano()-c.ended.Load() < int64(after)
}

// Work is one goroutine's long work beside the calls.
type Work struct {
	calls *Calls
	since time.Time
	spare time.Duration // for how long it may yet wait
	met   time.Time     // when calls were running
}

// Beside begins long work.
func (c *Calls) Beside() *Work { return &Work{calls: c, since: time.Now()} }

// Resume says that the goroutine has been waiting until now: that was no work.
func (w *Work) Resume() { w.since = time.Now() }

// Yield waits while calls are running or being answered, if there was work since the last wait. All waits together take
// no longer than twice as long as the work, and no more than 25 ms are saved up for later. It is called often, between
// two small steps; a context that ends ends the wait.
func (w *Work) Yield(ctx context.Context) {
	if w.calls == nil {
		return
	}
	now := time.Now()
	worked := now.Sub(w.since)
	if worked < stint {
		return
	}
	w.spare = min(w.spare+share*worked, longest)
	for w.calls.wait(now) && w.spare > 0 && ctx.Err() == nil {
		w.met = now
		time.Sleep(look)
		w.spare -= time.Since(w.met)
		now = time.Now()
	}
	w.since = now
}

// Crowded reports whether the work met calls lately: its next step, which nothing can interrupt, had better be short.
func (w *Work) Crowded() bool { return time.Since(w.met) < lately }
