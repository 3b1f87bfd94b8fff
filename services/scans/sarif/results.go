package sarif

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// Results streams all results in file order. It calls exactly one of yield and skip for each result. An error of either
// ends the stream and is returned unchanged. A *Result may be kept. All results of a rejected run are passed to skip.
//
// Results may be called again, but not concurrently, because the source is shared.
func (r *Report) Results(ctx context.Context, yield func(*Result) error, skip func(Skip) error) error {
	for _, run := range r.Runs {
		index := 0
		run.begin()
		for i := range run.segments {
			if err := r.segment(ctx, run, &run.segments[i], &index, yield, skip); err != nil {
				return err
			}
		}
		run.end()
		if index != run.Results {
			return fmt.Errorf("the report changed while it was read: runs[%d] had %d results, then %d", run.Index, run.Results, index)
		}
	}
	return nil
}

// begin prepares a run for its results, which may have been read before.
func (run *Run) begin() {
	run.stubs, run.told, run.unnamed, run.resultNotes = map[string]*Rule{}, placesTold{}, unnamed{}, notes{}
	if !run.begun {
		run.begun, run.opened = true, run.Warnings
	}
	run.Warnings = slices.Clone(run.opened)
	run.fixed = func(f jsonstream.Fix) {
		run.resultNotes.add(run.at.String()+f.Pointer, f.Problem, identifies(f))
	}
}

func (run *Run) end() {
	run.wire, run.named, run.fixed = nil, nil, nil
	run.stubs = nil // stubs that are in use stay alive with their results
	run.tellPlaces()
	run.tell(&run.resultNotes)
	run.unnamed.tell(run)
}

// elements starts to read a segment.
func (r *Report) elements(s *segment) (*jsonstream.Elements, error) {
	if _, err := r.src.Seek(s.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("go to the results of the report: %w", err)
	}
	if s.member {
		return jsonstream.NewMember(r.src, r.limits.MaxResultBytes), nil
	}
	values, err := jsonstream.NewElements(r.src, r.limits.MaxResultBytes)
	if err != nil {
		return nil, fmt.Errorf("read the results of the report: %w", err)
	}
	return values, nil
}

// segment streams the results of one segment.
func (r *Report) segment(ctx context.Context, run *Run, s *segment, index *int, yield func(*Result) error, skip func(Skip) error) error {
	values, err := r.elements(s)
	if err != nil {
		return err
	}
	for run.at = (place{s, 0}); ; run.at.index++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.member && run.at.index == 1 {
			return nil
		}
		raw, ok, err := values.Next()
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
			skipped = run.unreadable(Skip{Run: run.Index, Index: at, Reason: jsonstream.OverSize(r.limits.MaxResultBytes)})
		default:
			result, skipped = run.convert(raw, at, r)
		}
		if skipped != nil {
			err = skip(*skipped)
		} else {
			err = run.yieldPlaces(raw, result, r, yield)
		}
		if err != nil {
			return err
		}
	}
}
