// Package gate shares slots fairly among deployments: database connections, uploads, reading calls.
package gate

import (
	"context"
	"slices"
	"sync"
)

// Rule reports whether a deployment that holds some slots may take another, given how many are free.
type Rule func(held, free int) bool

// Share lets a deployment take a slot only while it holds fewer than n times the free ones. A deployment that is
// alone gets n/(n+1) of the slots, and another one always finds a free slot. See docs/decisions/0023-turns.md.
func Share(n int) Rule { return func(held, free int) bool { return held < n*free } }

// AtMost lets each deployment hold n slots.
func AtMost(n int) Rule { return func(held, _ int) bool { return held < n } }

// Gate hands out slots: first to the deployment that holds the fewest, and within a deployment in order of arrival.
type Gate struct {
	rule Rule

	mu    sync.Mutex
	free  int
	held  map[int64]int // by deployment; 0 stands for no single deployment and is exempt from the rule
	queue []*waiter
}

// waiter is a caller in the queue.
type waiter struct {
	deployment int64
	admitted   chan struct{} // closed when it has a slot
}

// New returns a gate with this number of slots.
func New(slots int, rule Rule) *Gate { return &Gate{free: slots, rule: rule, held: map[int64]int{}} }

// Enter waits for a slot until ctx ends. Deployment 0 means no single deployment.
func (g *Gate) Enter(ctx context.Context, deployment int64) error {
	w := &waiter{deployment: deployment, admitted: make(chan struct{})}
	g.mu.Lock()
	g.queue = append(g.queue, w)
	g.admit()
	g.mu.Unlock()
	select {
	case <-w.admitted:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.queue, w); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
		return ctx.Err()
	}
	g.release(deployment) // it got a slot at the same moment
	return ctx.Err()
}

// Leave releases a slot of a deployment.
func (g *Gate) Leave(deployment int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(deployment)
}

func (g *Gate) release(deployment int64) {
	g.free++
	if g.held[deployment]--; g.held[deployment] == 0 {
		delete(g.held, deployment)
	}
	g.admit()
}

// admit gives free slots to the waiters that may have them.
func (g *Gate) admit() {
	for {
		best := -1
		for i, w := range g.queue {
			if g.admissible(w.deployment) && (best < 0 || g.held[w.deployment] < g.held[g.queue[best].deployment]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		w := g.queue[best]
		g.queue = slices.Delete(g.queue, best, best+1)
		g.free--
		g.held[w.deployment]++
		close(w.admitted)
	}
}

func (g *Gate) admissible(deployment int64) bool {
	return g.free > 0 && (deployment == 0 || g.rule(g.held[deployment], g.free))
}
