package server

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// gcPercent lets the heap grow to four times what is alive before it is collected, not twice. Little of it is alive, a
// few ten megabytes, while a page of findings leaves half a megabyte behind: with Go's default of 100 a quarter of the
// CPU of reads went to the collector.
const gcPercent = 300

// relaxGC applies gcPercent, unless the operator decided (environment variable GOGC). GOMEMLIMIT works as always.
func relaxGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

const (
	// restTick is how often a server looks at how much it has to do.
	restTick = time.Second
	// quietBytes is what it allocates at most in a tick in which it has nothing to do but to look for background jobs and
	// to answer probes and scrapes.
	quietBytes = 1 << 20
	// quietTicks is how many such ticks in a row make a rest: caches are worth keeping between the requests of one client.
	quietTicks = 5
	// restWorth is what it must have allocated since the last rest for another to be worth its while; a server that only
	// looks for background jobs gets there in some minutes.
	restWorth = 16 << 20
)

// rest finds the moments at which memory is given back: at the end of the start, and when a load has ended.
type rest struct {
	quiet  int    // ticks in a row, this one included
	last   uint64 // bytes ever allocated, at the last tick
	rested uint64 // the same at the last rest; 0 before the first
}

// newRest takes the start as ended with the first quiet tick.
func newRest() *rest { return &rest{quiet: quietTicks - 1} }

// due is told once in a tick how many bytes the process ever allocated.
func (r *rest) due(allocated uint64) bool {
	if allocated-r.last > quietBytes {
		r.quiet = 0
	} else {
		r.quiet++
	}
	r.last = allocated
	if r.quiet < quietTicks || r.rested > 0 && allocated-r.rested < restWorth {
		return false
	}
	r.rested = allocated
	return true
}

// RestWhenIdle gives memory back to the operating system whenever there is a while without work, until ctx ends; Run
// does it, and so should whoever starts a server that has the process to itself. What only starting or a large import
// needed would stay otherwise: the heap is collected when it has grown fourfold, and a SQLite connection never gives
// its page cache back.
func (s *Server) RestWhenIdle(ctx context.Context) {
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(allocated)
	r := newRest()
	r.last = allocated[0].Value.Uint64()
	tick := time.NewTicker(restTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(allocated)
		if r.due(allocated[0].Value.Uint64()) {
			s.giveBack(ctx)
		}
	}
}

// giveBack takes some ten milliseconds. What is needed again comes from the page cache of the operating system, at the
// cost of a few milliseconds in all.
func (s *Server) giveBack(ctx context.Context) {
	err := s.store.ReleaseMemory(ctx)
	runtime.GC() // what pools hold stays for one collection more
	debug.FreeOSMemory()
	if err = errors.Join(err, dropProgram()); err != nil && ctx.Err() == nil {
		s.log.Debug("not all memory could be given back", "error", err)
	}
}
