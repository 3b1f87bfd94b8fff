package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/schollz/progressbar/v3"
)

// report is a file that is being uploaded.
type report struct {
	source *bufio.Reader
	close  func()
	bar    *progressbar.ProgressBar // nil away from a terminal

	mu  sync.Mutex
	err error // first error of reading the file
}

// openReport opens a file, or standard input for "-".
func openReport(std streams, name string) (*report, error) {
	r := &report{close: func() {}}
	in, size := std.in, int64(-1)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, errors.Unwrap(err) // the caller names the file
		}
		info, err := f.Stat()
		if err == nil && info.IsDir() {
			err = errors.New("is a directory, not a report file")
		}
		if err == nil && info.Mode().IsRegular() {
			size = info.Size()
			if size == 0 {
				err = errors.New("is empty; did the scanner fail?")
			}
		}
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		in, r.close = f, func() { _ = f.Close() }
	}
	if isTerminal(std.err) {
		r.bar = progressbar.NewOptions64(size,
			progressbar.OptionSetWriter(std.err),
			progressbar.OptionSetDescription(printable(name)),
			progressbar.OptionShowBytes(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionFullWidth(),
		)
	}
	r.source = bufio.NewReaderSize(readerFunc(func(p []byte) (int, error) {
		n, err := in.Read(p)
		if r.bar != nil {
			_ = r.bar.Add(n)
		}
		if err != nil && err != io.EOF {
			r.setError(fmt.Errorf("read: %w", err))
		}
		return n, err
	}), 64<<10)
	return r, nil
}

// compressed returns the report as gzip. A file that starts with the two magic bytes of gzip is sent unchanged,
// regardless of its name. Other files are compressed while streaming, so that memory does not depend on the size.
func (r *report) compressed() io.ReadCloser {
	if magic, _ := r.source.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return io.NopCloser(r.source)
	}
	reader, writer := io.Pipe()
	go func() {
		// Reports are repetitive: even the fastest level compresses them to about a tenth.
		z, err := gzip.NewWriterLevel(writer, gzip.BestSpeed)
		if err == nil {
			_, err = io.Copy(z, r.source)
		}
		if err == nil {
			err = z.Close()
		}
		_ = writer.CloseWithError(err)
	}()
	return reader
}

// finish removes the progress bar.
func (r *report) finish() {
	if r.bar != nil {
		_ = r.bar.Finish()
	}
}

func (r *report) setError(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && !errors.Is(err, os.ErrClosed) {
		r.err = err
	}
}

func (r *report) readError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
