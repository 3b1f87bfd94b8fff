package ingest

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// manyResults is from where on an import holds so much that the collector has to work harder, and after how many more
// this is looked at again.
const manyResults = 20_000

// While imports hold much, the heap may grow by manyRoom bytes, but by no less than manyPercent of what is alive:
// nearly all of that is numbers, which the collector does not look at. More room would be less work for it, of which
// callers feel every bit.
const manyRoom, manyPercent = 40 << 20, 25

// largeImports counts the imports that hold much, and keeps how the collector worked before.
var largeImports struct {
	sync.Mutex
	count, percent int
}

// memory is what an import does about its own.
type memory struct{ results int }

// add counts a result. The server lets its heap grow to a multiple of what is alive, since usually little is. With what
// has to be known of hundreds of thousands of results that would be hundreds of megabytes: meanwhile it may grow by
// less, now and then by another share.
func (m *memory) add() {
	if m.results++; m.results%manyResults != 0 {
		return
	}
	largeImports.Lock()
	defer largeImports.Unlock()
	if m.results == manyResults {
		if largeImports.count++; largeImports.count == 1 {
			largeImports.percent = debug.SetGCPercent(manyPercent)
		}
	}
	debug.SetGCPercent(min(largePercent(), largeImports.percent)) // the operator may want less, or none
}

// largePercent is by how much the heap may grow now.
func largePercent() int {
	alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(alive)
	return int(max(manyPercent, manyRoom*100/max(1, alive[0].Value.Uint64())))
}

// release puts things back when the import has ended and nothing holds its results any more. Without a collection the
// next one would wait until the heap is a multiple of what the import held.
func (m *memory) release() {
	many := m.results >= manyResults
	if m.results = 0; !many {
		return
	}
	largeImports.Lock()
	defer largeImports.Unlock()
	if largeImports.count--; largeImports.count == 0 {
		debug.FreeOSMemory()
		debug.SetGCPercent(largeImports.percent)
	}
}
