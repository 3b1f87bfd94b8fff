package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// tenant is a deployment, and a token with all permissions in it.
type tenant struct{ deployment, token string }

// own returns the deployment that the server creates.
func (b *bench) own() tenant { return tenant{deployment: deployment, token: b.token} }

// client returns a client of the tenant.
func (t tenant) client(server *child, connections int) *client {
	c := newClient(server.ready.HTTP, t.token, connections)
	c.deployment = t.deployment
	return c
}

// visitors are clients of one tenant with a fixed request rate (open loop). Clients that wait for each response would
// send less exactly when the server is slow.
type visitors struct {
	what      string
	of        tenant
	clients   int
	perSecond int // of each client
	ask       func(context.Context, *client) error
}

// pageReaders request pages below the capacity of the machine, so that waiting times are visible.
func pageReaders(of tenant) visitors {
	return visitors{what: "reader", of: of, clients: readers, perSecond: readsPerSecond, ask: func(ctx context.Context, c *client) error {
		return c.get(c.findingsPath(measuredQuery), "", 0)(ctx)
	}}
}

// waits has the waiting times of visitors in the rounds, in milliseconds, and the number of failed requests.
type waits struct{ p50, p95, p99, slowest, failed sample }

// visitWhile runs visitors until during ends, and waits for their pending requests.
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

// percentile returns a percentile of sorted waiting times, in milliseconds; 0 without any.
func percentile(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return micros(sorted[len(sorted)*percent/100]) / 1000
}

// visit runs one visitor. A waiting time starts at the scheduled time of the request, even if the previous response was
// late.
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
		if now := time.Now(); now.Sub(next) > time.Second { // far behind: the skipped requests would have waited until now
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
