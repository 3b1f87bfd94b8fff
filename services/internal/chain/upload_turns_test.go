package chain

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// queued begins to wait, and returns when it stands in the queue.
func queued(t testing.TB, g *uploadGate, deployment int64) (of *deploymentUploads, turn chan error) {
	t.Helper()
	of, err := g.arrive(deployment)
	if err != nil {
		t.Fatal(err)
	}
	turn = make(chan error, 1)
	g.mu.Lock()
	before := len(of.waiting) + of.running
	g.mu.Unlock()
	go func() { turn <- g.wait(t.Context(), of) }()
	for {
		g.mu.Lock()
		stands := len(of.waiting)+of.running > before
		g.mu.Unlock()
		if stands {
			return of, turn
		}
	}
}

// A deployment alone has half of the places; another one that comes later finds a place, and so does a third.
func TestUploadsLeavePlaces(t *testing.T) {
	g := newUploadGate(UploadLimits{AtOnce: 8, Queue: 32}, func() {})
	for i, want := range []int{4, 2, 1, 1} {
		var of *deploymentUploads
		for range 10 {
			of, _ = queued(t, g, int64(i))
		}
		if of.running != want {
			t.Errorf("deployment %d has %d places, want %d", i, of.running, want)
		}
	}
}

// Even a node of one processor has two places: one that reads a report for minutes leaves the other.
func TestUploadsOfOneProcessor(t *testing.T) {
	if g := newUploadGate(UploadLimits{}, func() {}); g.limits.AtOnce < 2 {
		t.Errorf("there are %d places", g.limits.AtOnce)
	}
	g := newUploadGate(UploadLimits{AtOnce: 2, Queue: 32}, func() {})
	for range 5 {
		queued(t, g, 1)
	}
	if _, turn := queued(t, g, 2); <-turn != nil {
		t.Error("the second deployment waits")
	}
}

// A deployment cannot take the queue of another.
func TestUploadQueueIsOfOneDeployment(t *testing.T) {
	refused := 0
	g := newUploadGate(UploadLimits{AtOnce: 2, Queue: 3}, func() { refused++ })
	for range 100 {
		if _, err := g.arrive(1); err != nil && refused == 0 {
			t.Error("refused without being counted")
		}
	}
	if refused != 96 {
		t.Errorf("%d of 100 were refused, want all but the one in work and three that wait", refused)
	}
	if _, err := g.arrive(2); err != nil {
		t.Errorf("another deployment: %v", err)
	}
}

// TestUploadTurns: no place is free that an upload may have, no deployment has more than it may, and no place gets lost, whoever
// ends, waits or goes away.
func TestUploadTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := UploadLimits{AtOnce: rapid.IntRange(1, 8).Draw(t, "places"), Queue: 100}
		limits.PerDeployment = rapid.IntRange(0, limits.AtOnce).Draw(t, "per deployment")
		g := newUploadGate(limits, func() {})
		type upload struct {
			of     *deploymentUploads
			turn   chan error
			cancel context.CancelFunc
		}
		var waiting, running []upload
		settle := func() {
			for {
				var still []upload
				for _, u := range waiting {
					select {
					case err := <-u.turn:
						if err != nil {
							t.Fatalf("an upload that waits: %v", err)
						}
						running = append(running, u)
					default:
						still = append(still, u)
					}
				}
				waiting = still
				g.mu.Lock()
				settled := g.running == len(running)
				g.mu.Unlock()
				if settled {
					return
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case what <= 1:
				of, err := g.arrive(rapid.Int64Range(1, 4).Draw(t, "deployment"))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				u := upload{of, make(chan error, 1), cancel}
				g.mu.Lock()
				before := len(of.waiting) + of.running
				g.mu.Unlock()
				go func() { u.turn <- g.wait(ctx, of) }()
				for stands := false; !stands; {
					g.mu.Lock()
					stands = len(of.waiting)+of.running > before
					g.mu.Unlock()
				}
				waiting = append(waiting, u)
			case what == 2 && len(running) > 0:
				i := rapid.IntRange(0, len(running)-1).Draw(t, "ended")
				g.done(running[i].of)
				running = append(running[:i], running[i+1:]...)
			case what == 3 && len(waiting) > 0:
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "gone")
				waiting[i].cancel()
				if err := <-waiting[i].turn; !errors.Is(err, context.Canceled) {
					t.Fatalf("one that went away: %v", err)
				}
				waiting = append(waiting[:i], waiting[i+1:]...)
			}
			settle()
			free := limits.AtOnce - len(running)
			if free < 0 {
				t.Fatalf("%d in work, allowed are %d", len(running), limits.AtOnce)
			}
			for _, of := range g.deployments {
				switch {
				case limits.PerDeployment > 0 && of.running > limits.PerDeployment:
					t.Fatalf("%d of one deployment, allowed are %d", of.running, limits.PerDeployment)
				case limits.PerDeployment == 0 && len(of.waiting) > 0 && of.running < free:
					t.Fatalf("%d places are free, and a deployment with %d waits", free, of.running)
				case limits.PerDeployment > 0 && len(of.waiting) > 0 && free > 0 && of.running < limits.PerDeployment:
					t.Fatalf("%d places are free, and a deployment with %d of %d waits", free, of.running, limits.PerDeployment)
				}
			}
		}
		for _, u := range append(waiting, running...) {
			u.cancel()
		}
	})
}
