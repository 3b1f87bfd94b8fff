package telemetry

import (
	"io"
	"sync"
	"time"
)

const (
	// gatherFor is how long a line waits for others at most, and gatherBytes how much waits together.
	gatherFor   = 100 * time.Millisecond
	gatherBytes = 64 << 10
)

// LogBuffer is where a logger writes its lines to. Each goes on to w at once, except between Gather and Through: a
// server that answers thousands of calls a second makes a system call for many lines then, and its calls do not queue
// for one. A line is never parted.
type LogBuffer struct {
	w io.Writer

	mu      sync.Mutex
	gathers bool
	lines   []byte // that wait; a timer runs when there are any
}

// NewLogBuffer returns a buffer that does not gather yet.
func NewLogBuffer(w io.Writer) *LogBuffer { return &LogBuffer{w: w} }

// Gather lets lines wait for others, for gatherFor at most.
func (b *LogBuffer) Gather() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gathers = true
}

// Through writes the lines that wait; from now on none does.
func (b *LogBuffer) Through() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gathers = false
	return b.flush()
}

// Flush writes the lines that wait.
func (b *LogBuffer) Flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flush()
}

// Write takes one or more whole lines.
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.gathers {
		return b.w.Write(p)
	}
	if len(b.lines) == 0 {
		time.AfterFunc(gatherFor, func() { _ = b.Flush() }) // as slog, which has nobody to tell either
	}
	if b.lines = append(b.lines, p...); len(b.lines) < gatherBytes {
		return len(p), nil
	}
	return len(p), b.flush()
}

// flush forgets the lines even when they cannot be written: a full disk must not fill the memory, too.
func (b *LogBuffer) flush() error {
	if len(b.lines) == 0 {
		return nil
	}
	_, err := b.w.Write(b.lines)
	if b.lines = b.lines[:0]; cap(b.lines) > 4*gatherBytes {
		b.lines = nil // of a single long line
	}
	return err
}
