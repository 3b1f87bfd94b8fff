package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/palisade/palisade/services/internal/pace"
)

// errStopped means that the server ended the upload.
var errStopped = errors.New("the upload was stopped")

// errSlow marks the error of an upload that is too slow.
var errSlow = errors.New("slow upload")

// uploadReader reads the body of an upload. It counts the bytes against the limit and fails when the client is silent
// or too slow. It can be stopped while it waits.
type uploadReader struct {
	body    io.Reader
	control *http.ResponseController
	idle    time.Duration
	pace    pace.Rule
	meter   *pace.Meter
	limit   int64

	read int64
	err  error // the first error; io.EOF at the end of the body

	mu      sync.Mutex
	stopped bool
	ended   bool // the body needs no deadline any more
}

func newUploadReader(body io.Reader, control *http.ResponseController, idle time.Duration, rule pace.Rule, limit int64) *uploadReader {
	return &uploadReader{body: body, control: control, idle: idle, pace: rule, meter: rule.Meter(), limit: limit}
}

// Read implements io.Reader. Only one goroutine may call it; any may call stop.
func (u *uploadReader) Read(p []byte) (int, error) {
	if u.err != nil {
		return 0, u.err
	}
	began := time.Now()
	if !u.extend() {
		u.err = errStopped
		return 0, u.err
	}
	n, err := u.body.Read(p)
	u.read += int64(n)
	u.meter.Add(n, time.Since(began))
	switch {
	case u.read > u.limit:
		n, err = 0, &http.MaxBytesError{Limit: u.limit}
	case errors.Is(err, io.EOF):
		u.end()
	case err != nil && u.isStopped():
		err = errStopped
	case u.meter.Slow():
		n, err = 0, fmt.Errorf("%w: %w", errSlow, u.pace.Error())
	}
	u.err = err
	return n, err
}

// finished reports whether the whole body was read.
func (u *uploadReader) finished() bool { return errors.Is(u.err, io.EOF) }

// failure is the error that ended the reading.
func (u *uploadReader) failure() error { return u.err }

// stop makes a waiting Read return, and later ones fail.
func (u *uploadReader) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended || u.stopped {
		return
	}
	u.stopped = true
	_ = u.control.SetReadDeadline(time.Now())
}

func (u *uploadReader) isStopped() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stopped
}

// extend sets the deadline of the next Read. It returns false when the upload was stopped.
func (u *uploadReader) extend() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stopped {
		return false
	}
	wait := u.idle
	if left, limited := u.meter.Left(); limited {
		wait = min(wait, left)
	}
	_ = u.control.SetReadDeadline(time.Now().Add(wait))
	return true
}

// end removes the deadline. net/http keeps reading the connection to detect that the client disconnects, and would
// mistake an expired deadline for that.
func (u *uploadReader) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	_ = u.control.SetReadDeadline(time.Time{})
}
