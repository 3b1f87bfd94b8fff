package telemetry

import (
	"io"
	"sync"
	"time"
)

const (
	// maxBufferTime is how long a line is buffered at most, and maxBufferBytes how many bytes are buffered.
	maxBufferTime  = 100 * time.Millisecond
	maxBufferBytes = 64 << 10
)

// LogBuffer buffers log lines. It writes each line to w at once, except between StartBuffering and StopBuffering. A
// server that answers thousands of requests per second then makes one system call for many lines, and its requests do
// not queue for it. A line is never split.
type LogBuffer struct {
	w io.Writer

	mu        sync.Mutex
	buffering bool
	lines     []byte // buffered; a timer runs when there are any
}

// NewLogBuffer returns a LogBuffer that does not buffer yet.
func NewLogBuffer(w io.Writer) *LogBuffer { return &LogBuffer{w: w} }

// StartBuffering starts buffering. A line is buffered for maxBufferTime at most.
func (b *LogBuffer) StartBuffering() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buffering = true
}

// StopBuffering stops buffering and writes the buffered lines.
func (b *LogBuffer) StopBuffering() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buffering = false
	return b.flush()
}

// Flush writes the buffered lines.
func (b *LogBuffer) Flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flush()
}

// Write takes one or more whole lines.
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.buffering {
		return b.w.Write(p)
	}
	if len(b.lines) == 0 {
		time.AfterFunc(maxBufferTime, func() { _ = b.Flush() }) // as slog, which cannot report errors either
	}
	if b.lines = append(b.lines, p...); len(b.lines) < maxBufferBytes {
		return len(p), nil
	}
	return len(p), b.flush()
}

// flush drops the lines even when the write fails: a full disk must not fill the memory, too.
func (b *LogBuffer) flush() error {
	if len(b.lines) == 0 {
		return nil
	}
	_, err := b.w.Write(b.lines)
	if b.lines = b.lines[:0]; cap(b.lines) > 4*maxBufferBytes {
		b.lines = nil // after a single long line
	}
	return err
}
