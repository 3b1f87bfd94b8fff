package ingest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/traffic"
)

// TestAheadTakesTurns reads and works on results beside a call that does not end: never both at once.
func TestAheadTakesTurns(t *testing.T) {
	const results, begun = 20 * aheadBatch, 5 * aheadBatch
	calls := &traffic.Calls{}
	calls.Begin()
	var working atomic.Bool
	together := 0
	source := func(_ context.Context, yield func(*Result) error) error {
		for n := range results {
			time.Sleep(10 * time.Microsecond)
			if n > begun && working.Load() {
				together++
			}
			if err := yield(&Result{result: n}); err != nil {
				return err
			}
		}
		return nil
	}
	work, next := calls.Beside(), 0
	err := aheadOf(calls, work, source)(t.Context(), func(i *Result) error {
		working.Store(true)
		defer working.Store(false)
		time.Sleep(10 * time.Microsecond)
		if i.result != next {
			t.Errorf("result %d came when it was the turn of %d", i.result, next)
		}
		next++
		return nil
	})
	if err != nil || next != results {
		t.Errorf("%d results and the error %v, want %d", next, err, results)
	}
	if together > 0 {
		t.Errorf("%d of %d results were read while others were worked on", together, results-begun)
	}
}
