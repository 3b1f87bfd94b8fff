package sarif

import (
	"context"
	"fmt"
	"io"
)

// Results streams all results in file order. For each one exactly one of yield and skip is called; an error of theirs ends the
// stream and is returned as it is. A *Result may be kept. The results of a rejected run all go to skip.
//
// It may be called again, but not at the same time: the source is shared.
func (r *Report) Results(ctx context.Context, yield func(*Result) error, skip func(Skip) error) error {
	for _, run := range r.Runs {
		index := 0
		run.stubs = map[string]*Rule{}
		for _, start := range run.segments {
			if err := r.segment(ctx, run, start, &index, yield, skip); err != nil {
				return err
			}
		}
		run.wire = nil
		run.stubs = nil // those that are in use live on with their results
		if index != run.Results {
			return fmt.Errorf("the report changed while it was read: runs[%d] had %d results, then %d", run.Index, run.Results, index)
		}
	}
	return nil
}

// segment streams one results array, which starts at a known offset.
func (r *Report) segment(ctx context.Context, run *Run, start int64, index *int, yield func(*Result) error, skip func(Skip) error) error {
	if _, err := r.src.Seek(start, io.SeekStart); err != nil {
		return fmt.Errorf("go to the results of the report: %w", err)
	}
	s := newStream(r.src, r.limits)
	var stop error
	err := s.array(func(int) error {
		if stop = ctx.Err(); stop != nil {
			return stop
		}
		raw, ok, err := s.value()
		if err != nil {
			return err
		}
		at := *index
		*index++
		switch {
		case run.Rejected != "":
			stop = skip(Skip{Run: run.Index, Index: at, Reason: "its run is rejected: " + run.Rejected})
			return stop
		case !ok:
			stop = skip(Skip{Run: run.Index, Index: at, Reason: overSize(r.limits)})
			return stop
		}
		result, skipped := run.convert(raw, at, r)
		if skipped != nil {
			stop = skip(*skipped)
		} else {
			stop = yield(result)
		}
		return stop
	})
	if stop != nil {
		return stop
	}
	return locate(err, r.src, start, s.offset(), r.limits)
}
