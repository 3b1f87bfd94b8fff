// Package gate shares places among deployments: connections of the database, uploads, calls that read.
package gate

import (
	"context"
	"slices"
	"sync"
)

// Rule says whether a deployment that holds some places may have one of those that are free.
type Rule func(held, free int) bool

// Share lets a deployment have another place only while it holds fewer than n times those that are free. So one that is
// alone gets n/(n+1) of them, and another one always finds a place, whatever the first one waits for. See
// docs/decisions/0023-turns.md.
func Share(n int) Rule { return func(held, free int) bool { return held < n*free } }

// AtMost lets each deployment have n places.
func AtMost(n int) Rule { return func(held, _ int) bool { return held < n } }

// Gate gives out places: to the deployment with the fewest first, and inside of one in order of arrival.
type Gate struct {
	rule Rule

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
func New(places int, rule Rule) *Gate { return &Gate{free: places, rule: rule, held: map[int64]int{}} }

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

// admit opens to those who may have a place.
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
	return g.free > 0 && (deployment == 0 || g.rule(g.held[deployment], g.free))
}
