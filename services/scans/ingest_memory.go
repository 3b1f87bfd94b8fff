package scans

import (
	"context"
	"runtime/debug"
	"sync"

	"github.com/palisade/palisade/services/findings/identity"
)

// evidenceList grows without being copied: it may be long.
type evidenceList struct {
	chunks [][]identity.Evidence
	size   int
}

const evidenceChunk = 1 << 12

func (l *evidenceList) add(e identity.Evidence) {
	if l.size%evidenceChunk == 0 {
		l.chunks = append(l.chunks, make([]identity.Evidence, 0, min(evidenceChunk, 64+7*l.size)))
	}
	last := len(l.chunks) - 1
	l.chunks[last] = append(l.chunks[last], e)
	l.size++
}

func (l *evidenceList) at(n int) *identity.Evidence {
	return &l.chunks[n/evidenceChunk][n%evidenceChunk]
}

// maxKept is how much memory the results of a report may take to be kept for the second pass, in bytes.
const maxKept = 32 << 20

// kept are the results of a report that is small enough not to be read again.
type kept struct {
	list []*incoming
	size int
}

func (k *kept) add(i *incoming) {
	if k.size > maxKept {
		return
	}
	k.list = append(k.list, i)
	if k.size += 2560 + len(i.content.GetSnippet()) + len(i.content.GetMessage()) + len(i.content.GetMetadata()) + len(i.content.GetDataflowTrace()); k.size > maxKept {
		k.list = nil
	}
}

// again passes the results for the second time.
func (in *ingest) again(ctx context.Context, yield func(*incoming) error) error {
	if in.kept.size > maxKept {
		return in.results.each(ctx, func(i *incoming) error {
			if err := in.present(ctx, i); err != nil {
				return err
			}
			return yield(i)
		})
	}
	for n, i := range in.kept.list {
		in.kept.list[n] = nil // what is written is not kept any more
		if err := yield(i); err != nil {
			return err
		}
	}
	return nil
}

// manyResults is from where on an import holds so much that the collector has to work harder.
const manyResults = 50_000

// largeImports counts the imports that hold much, and keeps how the collector worked before.
var largeImports struct {
	sync.Mutex
	count, percent int
}

// memory is what an import does about its own.
type memory struct{ results int }

// add counts a result. The server lets its heap grow to a multiple of what is alive, since usually little is. With the evidence of
// hundreds of thousands of results that would be half a gigabyte: meanwhile it may grow to twice as much.
func (m *memory) add() {
	if m.results++; m.results != manyResults {
		return
	}
	largeImports.Lock()
	defer largeImports.Unlock()
	if largeImports.count++; largeImports.count > 1 {
		return
	}
	if largeImports.percent = debug.SetGCPercent(100); largeImports.percent < 100 { // the operator wants less, or none
		debug.SetGCPercent(largeImports.percent)
	}
}

// release puts things back when the import has ended and nothing holds its results any more. Without a collection the next one
// would wait until the heap is a multiple of what the import held.
func (m *memory) release() {
	if m.results < manyResults {
		return
	}
	largeImports.Lock()
	defer largeImports.Unlock()
	if largeImports.count--; largeImports.count == 0 {
		debug.FreeOSMemory()
		debug.SetGCPercent(largeImports.percent)
	}
}
