package ingest

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// gcTuningThreshold is the number of results above which an import lowers GOGC. GOGC is computed again every
// gcTuningThreshold results.
const gcTuningThreshold = 20_000

// During large imports the heap may grow by heapHeadroom bytes before a collection, but by at least minGCPercent of the
// live heap. Most of that heap has no pointers and is not scanned. More headroom would save collector work, which slows
// down other requests.
const heapHeadroom, minGCPercent = 40 << 20, 25

// largeImports counts the large imports, and has the GOGC from before the first of them.
var largeImports struct {
	sync.Mutex
	count, percent int
}

// gcTuner adapts GOGC to the size of an import.
type gcTuner struct{ results int }

// add counts a result. The server usually runs with a high GOGC, because little of its heap is live. With the evidence
// of hundreds of thousands of results, this would cost hundreds of megabytes. So GOGC is lower during large imports.
func (t *gcTuner) add() {
	if t.results++; t.results%gcTuningThreshold != 0 {
		return
	}
	largeImports.Lock()
	defer largeImports.Unlock()
	if t.results == gcTuningThreshold {
		if largeImports.count++; largeImports.count == 1 {
			largeImports.percent = debug.SetGCPercent(minGCPercent)
		}
	}
	debug.SetGCPercent(min(gcPercent(), largeImports.percent)) // the operator may have set a lower GOGC
}

// gcPercent is the GOGC for the present size of the live heap.
func gcPercent() int {
	alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(alive)
	return int(max(minGCPercent, heapHeadroom*100/max(1, alive[0].Value.Uint64())))
}

// release restores GOGC after the last large import, when nothing refers to its results any more. It collects at once;
// otherwise the next collection would wait until the heap is a multiple of what the import held.
func (t *gcTuner) release() {
	many := t.results >= gcTuningThreshold
	if t.results = 0; !many {
		return
	}
	largeImports.Lock()
	defer largeImports.Unlock()
	if largeImports.count--; largeImports.count == 0 {
		debug.FreeOSMemory()
		debug.SetGCPercent(largeImports.percent)
	}
}
