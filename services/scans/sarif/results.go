package sarif

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Results streams all results in file order. It calls exactly one of yield and skip for each result. An error of either
// ends the stream and is returned unchanged. A *Result may be kept. All results of a rejected run are passed to skip.
//
// Results may be called again, but not concurrently, because the source is shared.
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
		run.stubs = nil // stubs that are in use stay alive with their results
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
	values, err := newElements(r.src, r.limits)
	if err != nil {
		return fmt.Errorf("read the results of the report: %w", err)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, ok, err := values.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the results of the report: %w", err)
		}
		at := *index
		*index++
		var result *Result
		var skipped *Skip
		switch {
		case run.Rejected != "":
			skipped = &Skip{Run: run.Index, Index: at, Reason: "its run is rejected: " + run.Rejected}
		case !ok:
			skipped = &Skip{Run: run.Index, Index: at, Reason: overSize(r.limits)}
		default:
			result, skipped = run.convert(raw, at, r)
		}
		if skipped != nil {
			err = skip(*skipped)
		} else {
			err = yield(result)
		}
		if err != nil {
			return err
		}
	}
}
