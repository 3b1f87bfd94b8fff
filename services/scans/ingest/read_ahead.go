package ingest

import (
	"context"
	"errors"

	"github.com/palisade/palisade/services/internal/traffic"
)

const (
	// aheadBatch is how many results are handed over at a time, and aheadBatches how many such batches may wait, beside one that
	// is worked on and one that is read.
	aheadBatch   = 100
	aheadBatches = 2
)

// errNotWanted stops a reader whose results nobody takes any more.
var errNotWanted = errors.New("the results are not wanted any more")

// eachResult passes results in order: see source.
type eachResult func(ctx context.Context, yield func(*Result) error) error

// aheadOf lets a source read in a goroutine of its own while results that it has passed are worked on: a report takes as long to
// read as its results take to be hashed. All calls of yield are made by the caller's goroutine; a panic of the source is one of the
// caller. The source leaves the processor to calls, as does the caller with his work; while there are some, the two take turns, so that
// they never have two processors, and with them all of a small machine: nobody would look there for the next call.
func aheadOf(calls *traffic.Calls, work *traffic.Work, each eachResult) eachResult {
	return func(ctx context.Context, yield func(*Result) error) error {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		r := &aheadReader{each: each, work: calls.Beside(), batches: make(chan []*Result, aheadBatches), done: make(chan struct{}, aheadBatches+2)}
		go r.read(ctx)
		var failed error
		for batch := range r.batches {
			work.Resume()
			for _, i := range batch {
				if failed == nil {
					if failed = yield(i); failed != nil {
						stop(errNotWanted)
					}
				}
			}
			select {
			case r.done <- struct{}{}:
			case <-ctx.Done(): // nobody waits for it any more
			}
		}
		switch {
		case r.panicked != nil:
			panic(r.panicked)
		case failed != nil:
			return failed
		}
		return r.err
	}
}

type aheadReader struct {
	each     eachResult
	work     *traffic.Work
	batches  chan []*Result
	done     chan struct{} // one for each batch that was worked on
	waiting  int           // batches that were not, as far as the reader knows
	err      error
	panicked any
}

// read closes batches when all else is set.
func (r *aheadReader) read(ctx context.Context) {
	defer close(r.batches)
	defer func() { r.panicked = recover() }()
	var batch []*Result
	r.err = r.each(ctx, func(i *Result) error {
		r.work.Yield(ctx)
		if batch == nil {
			batch = make([]*Result, 0, aheadBatch)
		}
		if batch = append(batch, i); len(batch) < aheadBatch {
			return nil
		}
		select {
		case r.batches <- batch:
			r.waiting++
			batch = nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		r.takeTurns(ctx)
		r.work.Resume()
		return nil
	})
	if r.err == nil && len(batch) > 0 {
		select {
		case r.batches <- batch:
		case <-ctx.Done():
			r.err = context.Cause(ctx)
		}
	}
}

// takeTurns waits until all batches are worked on, if calls want the processors.
func (r *aheadReader) takeTurns(ctx context.Context) {
	for r.waiting > 0 && (r.work.Crowded() || len(r.done) > 0) {
		select {
		case <-r.done:
			r.waiting--
		case <-ctx.Done():
			return
		}
	}
}
