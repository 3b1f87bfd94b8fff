package gate

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// TestGate: with callers that come and go, no slot is lost or given twice, no slot stays free that a waiter may
// have, and no deployment exceeds its share.
func TestGate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 12).Draw(t, "slots")
		share := rapid.IntRange(1, 3).Draw(t, "share")
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		rule := Share(share)
		if rapid.Bool().Draw(t, "fixed") {
			rule = AtMost(limit)
		}
		g := New(slots, rule)
		var inside []int64
		var waiting []*waiter
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(inside) > 0 && rapid.Bool().Draw(t, "leaves") {
				i := rapid.IntRange(0, len(inside)-1).Draw(t, "who")
				g.Leave(inside[i])
				inside = append(inside[:i], inside[i+1:]...)
			} else {
				w := &waiter{deployment: rapid.Int64Range(0, 3).Draw(t, "deployment"), admitted: make(chan struct{})}
				waiting = append(waiting, w)
				g.mu.Lock()
				g.queue = append(g.queue, w)
				g.admit()
				g.mu.Unlock()
			}
			var still []*waiter
			for _, w := range waiting {
				select {
				case <-w.admitted:
					inside = append(inside, w.deployment)
				default:
					still = append(still, w)
					if g.admissible(w.deployment) {
						t.Fatalf("deployment %d waits, %d slots are free and it holds %d", w.deployment, g.free, g.held[w.deployment])
					}
				}
			}
			waiting = still
			if g.free+len(inside) != slots {
				t.Fatalf("%d slots are free and %d taken, of %d", g.free, len(inside), slots)
			}
		}
	})
}

// TestLateComersFindSlots: a deployment alone gets half of the slots, and deployments that come later find some.
func TestLateComersFindSlots(t *testing.T) {
	t.Parallel()
	g := New(8, Share(1))
	for i, want := range []int{4, 2, 1, 1} {
		deployment := int64(i + 1)
		for range 10 {
			g.queue = append(g.queue, &waiter{deployment: deployment, admitted: make(chan struct{})})
			g.admit()
		}
		if g.held[deployment] != want {
			t.Errorf("deployment %d has %d slots, want %d", deployment, g.held[deployment], want)
		}
	}
}

// TestCancelledWaiterLeaves: a caller whose context ends holds no slot.
func TestCancelledWaiterLeaves(t *testing.T) {
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
		t.Errorf("%d slots, held %v, %d wait", g.free, g.held, len(g.queue))
	}
}
