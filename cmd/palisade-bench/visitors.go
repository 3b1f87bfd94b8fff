package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// tenant is a deployment, and a token that may do everything in it.
type tenant struct{ deployment, token string }

// own is the deployment that the server creates.
func (b *bench) own() tenant { return tenant{deployment: deployment, token: b.token} }

// client of the tenant.
func (t tenant) client(server *child, connections int) *client {
	c := newClient(server.ready.HTTP, t.token, connections)
	c.deployment = t.deployment
	return c
}

// visitors are clients of one tenant that ask at fixed times, not as fast as they are answered: one that only waits
// would ask less just when it is slow.
type visitors struct {
	what      string
	of        tenant
	clients   int
	perSecond int // of each client
	ask       func(context.Context, *client) error
}

// pageReaders ask for pages: less than the machine can do, so that waiting shows.
func pageReaders(of tenant) visitors {
	return visitors{what: "reader", of: of, clients: readers, perSecond: readsPerSecond, ask: func(ctx context.Context, c *client) error {
		return c.get(c.findingsPath(theQuery), "", 0)(ctx)
	}}
}

// waits are what visitors waited in the rounds, in milliseconds, and how many of their requests failed.
type waits struct{ p50, p95, p99, slowest, failed sample }

// visitWhile lets visitors ask until during ends; what is under way then is waited for.
func (b *bench) visitWhile(ctx, during context.Context, v visitors, w *waits) error {
	results := make(chan []time.Duration, v.clients)
	failures := make(chan int, v.clients)
	for range v.clients {
		go func() {
			waited, failed := b.visit(ctx, during, v)
			results <- waited
			failures <- failed
		}()
	}
	var all []time.Duration
	failed := 0
	for range v.clients {
		all = append(all, <-results...)
		failed += <-failures
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no %s got an answer (%d errors)", v.what, failed)
	}
	slices.Sort(all)
	w.p50 = append(w.p50, percentile(all, 50))
	w.p95 = append(w.p95, percentile(all, 95))
	w.p99 = append(w.p99, percentile(all, 99))
	w.slowest = append(w.slowest, micros(all[len(all)-1])/1000)
	w.failed = append(w.failed, float64(failed))
	return nil
}

// percentile is that of waits in order, in milliseconds; 0 without any.
func percentile(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return micros(sorted[len(sorted)*percent/100]) / 1000
}

// visit is one visitor. It waits since the time at which it was to ask, also when the answer before came later.
func (b *bench) visit(ctx, during context.Context, v visitors) (waited []time.Duration, failed int) {
	c := v.of.client(b.server, 1)
	defer c.close()
	next, every := time.Now(), time.Second/time.Duration(v.perSecond)
	for {
		err := v.ask(ctx, c)
		switch {
		case ctx.Err() != nil:
			return waited, failed
		case err != nil:
			b.progress("%s: %v", v.what, err)
			failed++
		default:
			waited = append(waited, time.Since(next))
		}
		next = next.Add(every)
		if now := time.Now(); now.Sub(next) > time.Second { // far behind: what it was to ask meanwhile would have waited until now
			for ; next.Before(now); next = next.Add(every) {
				waited = append(waited, now.Sub(next))
			}
		}
		select {
		case <-during.Done():
			return waited, failed
		case <-time.After(time.Until(next)):
		}
	}
}
