package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/pgtest"
)

// TestGate: whoever comes and goes, places are neither lost nor given twice, none stays empty that somebody may have, and none is
// had by a deployment beyond its share.
func TestGate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.IntRange(1, 12).Draw(t, "places")
		g := newGate(places)
		var inside []int64
		var waiting []*entrance
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(inside) > 0 && rapid.Bool().Draw(t, "leaves") {
				i := rapid.IntRange(0, len(inside)-1).Draw(t, "who")
				g.leave(inside[i])
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
		for d, n := range g.held {
			if d != 0 && n-1 >= gateShare*places {
				t.Fatalf("deployment %d holds %d of %d places", d, n, places)
			}
		}
	})
}

// TestGateIsLeftInTime: a caller who goes takes nothing along.
func TestGateIsLeftInTime(t *testing.T) {
	t.Parallel()
	g := newGate(1)
	if err := g.enter(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.enter(gone, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	g.leave(1)
	if g.free != 1 || len(g.held) != 0 || len(g.queue) != 0 {
		t.Errorf("%d places, held %v, %d wait", g.free, g.held, len(g.queue))
	}
}

// TestWritesThatWaitForALock: a deployment whose Writes all wait for one row, which a long import of its own has locked, does not
// keep those of another one from their connections.
func TestWritesThatWaitForALock(t *testing.T) {
	t.Parallel()
	st := open(t, Options{Database: pgtest.NewDatabase(t)})
	busy, quiet := tenant.NewContext(t.Context(), 1), tenant.NewContext(t.Context(), 2)
	locked, release := make(chan struct{}), make(chan struct{})
	lock := func(ctx context.Context) error {
		tx, _ := st.Tx(ctx)
		_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(4711)")
		return err
	}
	ended := make(chan error, 101)
	go func() {
		ended <- st.Write(busy, func(ctx context.Context, _ *ent.Tx) error {
			err := lock(ctx)
			close(locked)
			<-release
			return err
		})
	}()
	<-locked
	for range 100 {
		go func() { ended <- st.Write(busy, func(ctx context.Context, _ *ent.Tx) error { return lock(ctx) }) }()
	}
	for st.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(quiet, 30*time.Second)
	defer cancel()
	if err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		own, _ := st.Tx(ctx)
		_, err := own.ExecContext(ctx, "SELECT 1")
		return err
	}); err != nil {
		t.Errorf("another deployment: %v", err)
	}
	close(release)
	for range 101 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
