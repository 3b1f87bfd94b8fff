// Package gate shares places among deployments: connections of the database, calls at the same time.
package gate

import (
	"context"
	"slices"
	"sync"
)

// Gate gives out places. A deployment gets another one only while it holds fewer than share times those that would still be free. So
// one that is alone gets share/(share+1) of them, and another one always finds a place, whatever the first one waits for.
// Source: the dynamic threshold of Choudhury and Hahne, Dynamic queue length thresholds for shared-memory packet switches (1998).
type Gate struct {
	share int

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

// New makes a gate with so many places.
func New(places, share int) *Gate { return &Gate{free: places, share: share, held: map[int64]int{}} }

// Enter waits for a place of the deployment until ctx ends; 0 is no single deployment.
func (g *Gate) Enter(ctx context.Context, deployment int64) error {
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

// Leave gives the place of a deployment back.
func (g *Gate) Leave(deployment int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.give(deployment)
}

func (g *Gate) give(deployment int64) {
	g.free++
	if g.held[deployment]--; g.held[deployment] == 0 {
		delete(g.held, deployment)
	}
	g.admit()
}

// admit opens to those who may have a place: of the deployment with the fewest first, and of one in order of arrival.
func (g *Gate) admit() {
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

func (g *Gate) admissible(deployment int64) bool {
	return g.free > 0 && (deployment == 0 || g.held[deployment] < g.share*g.free)
}
