package scans

import (
	"context"
	"errors"

	"github.com/palisade/palisade/services/internal/traffic"
)

const (
	// aheadBatch is how many results are handed over at a time, and aheadBatches how many such batches may wait.
	aheadBatch   = 100
	aheadBatches = 2
)

// errNotWanted stops a reader whose results nobody takes any more.
var errNotWanted = errors.New("the results are not wanted any more")

// eachResult passes results in order: see source.
type eachResult func(ctx context.Context, yield func(*incoming) error) error

// aheadOf lets a source read in a goroutine of its own while results that it has passed are worked on: a report takes as long to
// read as its results take to be hashed. All calls of yield are made by the caller's goroutine; a panic of the source is one of the
// caller. The source leaves the processor to
// calls, as does the caller with his work.
func aheadOf(calls *traffic.Calls, work *traffic.Work, each eachResult) eachResult {
	return func(ctx context.Context, yield func(*incoming) error) error {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		r := &aheadReader{each: each, work: calls.Beside(), batches: make(chan []*incoming, aheadBatches)}
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
	batches  chan []*incoming
	err      error
	panicked any
}

// read closes batches when all else is set.
func (r *aheadReader) read(ctx context.Context) {
	defer close(r.batches)
	defer func() { r.panicked = recover() }()
	var batch []*incoming
	r.err = r.each(ctx, func(i *incoming) error {
		r.work.Yield(ctx)
		if batch == nil {
			batch = make([]*incoming, 0, aheadBatch)
		}
		if batch = append(batch, i); len(batch) < aheadBatch {
			return nil
		}
		select {
		case r.batches <- batch:
			r.work.Resume()
			batch = nil
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if r.err == nil && len(batch) > 0 {
		select {
		case r.batches <- batch:
		case <-ctx.Done():
			r.err = context.Cause(ctx)
		}
	}
}
