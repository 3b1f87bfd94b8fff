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

// gcPercent lets the heap grow to four times the live heap before a collection, not twice. The live heap is only a few
// tens of megabytes, while a page of findings leaves half a megabyte of garbage: with Go's default of 100 a quarter of
// the CPU of reads went to the collector.
const gcPercent = 300

// relaxGC applies gcPercent, unless the operator set GOGC. GOMEMLIMIT works as always.
func relaxGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

const (
	// idleTick is how often a server checks whether it is idle.
	idleTick = time.Second
	// idleBytes is the most that an idle server allocates in a tick. It only polls for background jobs and answers
	// probes and scrapes.
	idleBytes = 1 << 20
	// idleTicks is the number of such ticks in a row after which a server is idle. Caches are worth keeping between the
	// requests of one client.
	idleTicks = 5
	// minReclaim is how much a server must have allocated since the last release of memory before another one pays off.
	// A server that only polls for background jobs reaches it in some minutes.
	minReclaim = 16 << 20
)

// idleDetector finds the moments to release memory: after the start, and when a load has ended.
type idleDetector struct {
	idle     int    // idle ticks in a row, including this one
	last     uint64 // bytes ever allocated, at the last tick
	released uint64 // the same at the last release; 0 before the first
}

// newIdleDetector treats the start as ended after the first idle tick.
func newIdleDetector() *idleDetector { return &idleDetector{idle: idleTicks - 1} }

// due reports whether to release memory now. It is called once per tick with the bytes that the process ever allocated.
func (r *idleDetector) due(allocated uint64) bool {
	if allocated-r.last > idleBytes {
		r.idle = 0
	} else {
		r.idle++
	}
	r.last = allocated
	if r.idle < idleTicks || r.released > 0 && allocated-r.released < minReclaim {
		return false
	}
	r.released = allocated
	return true
}

// ReleaseMemoryWhenIdle releases memory to the operating system when the server is idle, until ctx ends. Run calls it.
// So should anything else that starts a server in its own process. Otherwise the memory of the start or of a large
// import stays: the heap is collected only when it has grown fourfold, and a SQLite connection never frees its page
// cache.
func (s *Server) ReleaseMemoryWhenIdle(ctx context.Context) {
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(allocated)
	r := newIdleDetector()
	r.last = allocated[0].Value.Uint64()
	tick := time.NewTicker(idleTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(allocated)
		if r.due(allocated[0].Value.Uint64()) {
			s.releaseMemory(ctx)
		}
	}
}

// releaseMemory takes about ten milliseconds. Memory that is needed again comes from the page cache of the operating
// system, within a few milliseconds in total.
func (s *Server) releaseMemory(ctx context.Context) {
	err := s.store.ReleaseMemory(ctx)
	runtime.GC() // pools keep their contents for one more collection
	debug.FreeOSMemory()
	if err = errors.Join(err, dropProgram()); err != nil && ctx.Err() == nil {
		s.log.Debug("not all memory could be released", "error", err)
	}
}
