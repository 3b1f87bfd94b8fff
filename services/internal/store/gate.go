package store

import (
	"context"
	"slices"
	"sync"
)

// gateShare is how many places of a gate a deployment may hold for each that would still be free. With 2, one that is alone gets two
// thirds, and another always finds a place, whatever the first one waits for: a row that its own import has locked, for example.
// Source: the dynamic threshold of Choudhury and Hahne, Dynamic queue length thresholds for shared-memory packet switches (1998).
const gateShare = 2

// gate bounds the transactions on PostgreSQL that have a connection at the same time, and shares its places among deployments.
type gate struct {
	mu    sync.Mutex
	free  int
	held  map[int64]int // by deployment; what belongs to no single one counts as 0, and is not held back
	queue []*entrance
}

// entrance is one who waits.
type entrance struct {
	deployment int64
	open       chan struct{} // closed: it has a place
}

func newGate(places int) *gate { return &gate{free: places, held: map[int64]int{}} }

// enter waits for a place of the deployment.
func (g *gate) enter(ctx context.Context, deployment int64) error {
	e := &entrance{deployment: deployment, open: make(chan struct{})}
	g.mu.Lock()
	g.queue = append(g.queue, e)
	g.admit()
	g.mu.Unlock()
	select {
	case <-e.open:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.queue, e); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
		return ctx.Err()
	}
	g.give(deployment) // it got a place at the same moment
	return ctx.Err()
}

// leave gives the place of a deployment back.
func (g *gate) leave(deployment int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.give(deployment)
}

func (g *gate) give(deployment int64) {
	g.free++
	if g.held[deployment]--; g.held[deployment] == 0 {
		delete(g.held, deployment)
	}
	g.admit()
}

// admit opens to those who may have a place: of the deployment with the fewest first, and of one in order of arrival.
func (g *gate) admit() {
	for {
		best := -1
		for i, e := range g.queue {
			if g.admissible(e.deployment) && (best < 0 || g.held[e.deployment] < g.held[g.queue[best].deployment]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		e := g.queue[best]
		g.queue = slices.Delete(g.queue, best, best+1)
		g.free--
		g.held[e.deployment]++
		close(e.open)
	}
}

func (g *gate) admissible(deployment int64) bool {
	return g.free > 0 && (deployment == 0 || g.held[deployment] < gateShare*g.free)
}
