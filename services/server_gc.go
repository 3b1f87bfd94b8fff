package services

import (
	"os"
	"runtime/debug"
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

// settleAfter is when all parts of a server have begun their work.
const settleAfter = 2 * time.Second

// settle gives the memory that only starting needed back to the operating system: a fifth of its heap at rest, which with
// gcPercent would stay until it has grown fourfold.
func settle() { debug.FreeOSMemory() }
