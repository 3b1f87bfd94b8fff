package scans

import (
	"runtime/debug"
	"sync"
)

// manyResults is from where on an import holds so much that the collector has to work harder.
const manyResults = 20_000

// manyPercent is by how much the heap may grow then, in percent of what is alive: nearly all of that is numbers, which the collector
// does not look at.
const manyPercent = 40

// largeImports counts the imports that hold much, and keeps how the collector worked before.
var largeImports struct {
	sync.Mutex
	count, percent int
}

// memory is what an import does about its own.
type memory struct{ results int }

// add counts a result. The server lets its heap grow to a multiple of what is alive, since usually little is. With what has to be
// known of hundreds of thousands of results that would be hundreds of megabytes: meanwhile it may grow by less.
func (m *memory) add() {
	if m.results++; m.results != manyResults {
		return
	}
	largeImports.Lock()
	defer largeImports.Unlock()
	if largeImports.count++; largeImports.count > 1 {
		return
	}
	if largeImports.percent = debug.SetGCPercent(manyPercent); largeImports.percent < manyPercent { // the operator wants less, or none
		debug.SetGCPercent(largeImports.percent)
	}
}

// release puts things back when the import has ended and nothing holds its results any more. Without a collection the next one
// would wait until the heap is a multiple of what the import held.
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
