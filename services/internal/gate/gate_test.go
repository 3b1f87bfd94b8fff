package gate

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// TestGate: whoever comes and goes, places are neither lost nor given twice, none stays empty that somebody may have,
// and none is had by a deployment beyond its share.
func TestGate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.IntRange(1, 12).Draw(t, "places")
		share := rapid.IntRange(1, 3).Draw(t, "share")
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		rule := Share(share)
		if rapid.Bool().Draw(t, "fixed") {
			rule = AtMost(limit)
		}
		g := New(places, rule)
		var inside []int64
		var waiting []*entrance
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(inside) > 0 && rapid.Bool().Draw(t, "leaves") {
				i := rapid.IntRange(0, len(inside)-1).Draw(t, "who")
				g.Leave(inside[i])
				inside = append(inside[:i], inside[i+1:]...)
			} else {
				e := &entrance{deployment: rapid.Int64Range(0, 3).Draw(t, "deployment"), open: make(chan struct{})}
				waiting = append(waiting, e)
				g.mu.Lock()
				g.queue = append(g.queue, e)
				g.admit()
				g.mu.Unlock()
			}
			var still []*entrance
			for _, e := range waiting {
				select {
				case <-e.open:
					inside = append(inside, e.deployment)
				default:
					still = append(still, e)
					if g.admissible(e.deployment) {
						t.Fatalf("deployment %d waits, %d places are free and it holds %d", e.deployment, g.free, g.held[e.deployment])
					}
				}
			}
			waiting = still
			if g.free+len(inside) != places {
				t.Fatalf("%d places are free and %d taken, of %d", g.free, len(inside), places)
			}
		}
	})
}

// TestLateComersFindPlaces: a deployment alone has half of the places, and others that come later find some.
func TestLateComersFindPlaces(t *testing.T) {
	t.Parallel()
	g := New(8, Share(1))
	for i, want := range []int{4, 2, 1, 1} {
		deployment := int64(i + 1)
		for range 10 {
			g.queue = append(g.queue, &entrance{deployment: deployment, open: make(chan struct{})})
			g.admit()
		}
		if g.held[deployment] != want {
			t.Errorf("deployment %d has %d places, want %d", deployment, g.held[deployment], want)
		}
	}
}

// TestGateIsLeftInTime: a caller who goes takes nothing along.
func TestGateIsLeftInTime(t *testing.T) {
	t.Parallel()
	g := New(1, Share(1))
	if err := g.Enter(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Enter(gone, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	g.Leave(1)
	if g.free != 1 || len(g.held) != 0 || len(g.queue) != 0 {
		t.Errorf("%d places, held %v, %d wait", g.free, g.held, len(g.queue))
	}
}
