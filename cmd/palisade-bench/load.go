package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// meter reports the CPU time of a server since its start.
type meter interface {
	cpu() (time.Duration, error)
}

// target is a server and a request, measured in rounds that alternate with other targets.
type target struct {
	what    string
	server  meter
	workers int                             // concurrent requests
	least   int                             // requests in a round; 0 means minRequests
	before  func(ctx context.Context) error // before each round, not measured; may be nil
	do      func(ctx context.Context) error

	requests int    // in one round
	cpu      sample // microseconds of the server per request
	p50, p99 sample // microseconds of latency
}

// minRequests is enough for a meaningful 99th percentile of a round.
const minRequests = 200

// calibrate warms up the server and determines the number of requests that take the CPU time of one round.
func (t *target) calibrate(ctx context.Context, budget time.Duration) error {
	for n := min(20, cmp.Or(t.least, minRequests)); ; n *= 4 {
		if err := t.begin(ctx); err != nil {
			return err
		}
		waited, cpu, err := t.run(ctx, n)
		if err != nil {
			return err
		}
		if cpu >= budget/5 || n > 1_000_000 {
			perRequest := max(cpu/time.Duration(len(waited)), time.Microsecond)
			t.requests = max(int(budget/perRequest), cmp.Or(t.least, minRequests))
			return nil
		}
	}
}

// round measures one round.
func (t *target) round(ctx context.Context) error {
	if err := t.begin(ctx); err != nil {
		return err
	}
	waited, cpu, err := t.run(ctx, t.requests)
	if err != nil {
		return err
	}
	slices.Sort(waited)
	t.cpu = append(t.cpu, micros(cpu)/float64(len(waited)))
	t.p50 = append(t.p50, micros(waited[len(waited)/2]))
	t.p99 = append(t.p99, micros(waited[len(waited)*99/100]))
	return nil
}

func (t *target) begin(ctx context.Context) error {
	if t.before == nil {
		return nil
	}
	if err := t.before(ctx); err != nil {
		return fmt.Errorf("%s: %w", t.what, err)
	}
	return nil
}

// run sends n requests and returns their latencies and the server's CPU time.
func (t *target) run(ctx context.Context, n int) (waited []time.Duration, cpu time.Duration, err error) {
	before, err := t.server.cpu()
	if err != nil {
		return nil, 0, err
	}
	waited = make([]time.Duration, n)
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range t.workers {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				began := time.Now()
				if err := t.do(ctx); err != nil {
					return fmt.Errorf("%s: %w", t.what, err)
				}
				waited[i] = time.Since(began)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	after, err := t.server.cpu()
	return waited, after - before, err
}

// takeTurns runs all rounds: one of each target, then the next of each.
func takeTurns(ctx context.Context, rounds int, targets []*target, progress func(string, ...any)) error {
	for n := range rounds {
		progress("pages, round %d of %d", n+1, rounds)
		for _, t := range targets {
			if err := t.round(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// row returns a row of the table.
func (t *target) row() row {
	return row{
		what: t.what, value: t.cpu, unit: cpuMicros,
		note: fmt.Sprintf("p50 %.2f ms, p99 %.2f ms", t.p50.median()/1000, t.p99.median()/1000),
	}
}

// against adds the baseline of the row.
func (r row) against(base *target, name string, b *bar) row {
	r.ratio, r.base, r.bar = r.value.over(base.cpu), name, b
	return r
}

// tail is the ratio of the 99th percentile to the median.
func (t *target) tail() sample { return t.p99.over(t.p50) }

// cost measures one request in microseconds: on SQLite the CPU time of the server; on PostgreSQL, where other processes
// do most of the work, the median latency of one client.
func (b *bench) cost(ctx context.Context, server meter, requests int, do func(ctx context.Context, i int) error) (float64, error) {
	before, err := server.cpu()
	if err != nil {
		return 0, err
	}
	var waited sample
	for i := range requests {
		began := time.Now()
		if err := do(ctx, i); err != nil {
			return 0, err
		}
		waited = append(waited, micros(time.Since(began)))
	}
	after, err := server.cpu()
	if b.db.postgres() {
		return waited.median(), err
	}
	return micros(after-before) / float64(requests), err
}

// costUnit formats the result of cost.
func (b *bench) costUnit() func(float64) string {
	if b.db.postgres() {
		return waitedMicros
	}
	return cpuMicros
}
