package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// importResults are the findings of an import that others read beside.
	importResults = 100_000
	// readers ask for a page readsPerSecond times a second each: less than the machine can do, so that waiting shows.
	readers, readsPerSecond = 4, 50
	// idleReads is how long readers are measured without an import.
	idleReads = 4 * time.Second
	// importRounds are enough: each brings importResults.
	importRounds = 3
)

// The bars of large imports.
const (
	peakBar     = 300 // megabytes of the server that imports the largest report
	readP50Bar  = 1.6
	readP95Bar  = 1.2 // what an upload of one tenant may cost another one
	readP99Bar  = 10
	readErrsBar = 0
)

// measureImport reads pages while 100,000 findings are imported, and then imports the largest report that the server takes.
func (b *bench) measureImport(ctx context.Context) ([]row, error) {
	if err := b.dropPlain(ctx); err != nil {
		return nil, err
	}
	// Bulk triage has left rows behind that the database itself would clear away within minutes.
	if err := b.db.settle(ctx); err != nil {
		return nil, err
	}
	var idle, busy waits
	var took sample
	for n := range min(b.rounds, importRounds) {
		b.progress("readers beside an import, round %d", n+1)
		if err := b.importRound(ctx, n, &idle, &busy, &took); err != nil {
			return nil, err
		}
	}
	const base = "idle"
	note := fmt.Sprintf("%d readers, %d pages a second each, on cores that they share with server and import", readers, readsPerSecond)
	rows := []row{
		{what: "readers, idle: p50", value: idle.p50, unit: millis, note: note},
		{what: "readers, idle: p95", value: idle.p95, unit: millis},
		{what: "readers, idle: p99", value: idle.p99, unit: millis},
		{what: "readers during an import: p50", value: busy.p50, unit: millis, ratio: busy.p50.over(idle.p50), base: base, bar: atMost(readP50Bar), note: fmt.Sprintf("%d findings in %.1f s", b.importResults(), took.median())},
		{what: "readers during an import: p95", value: busy.p95, unit: millis, ratio: busy.p95.over(idle.p95), base: base, bar: atMost(readP95Bar)},
		{what: "readers during an import: p99", value: busy.p99, unit: millis, ratio: busy.p99.over(idle.p99), base: base, bar: atMost(readP99Bar)},
		{what: "readers during an import: errors", value: busy.failed, unit: plainNumber, bar: within(readErrsBar, " ")},
	}
	if b.largeBytes == 0 {
		return rows, nil
	}
	large, err := b.measureLarge(ctx)
	return append(rows, large...), err
}

func (b *bench) importResults() int { return min(importResults, 10*b.results) }

func (b *bench) importRound(ctx context.Context, n int, idle, busy *waits, took *sample) error {
	report, err := makeReport(uint64(1<<22+n), b.importResults())
	if err != nil {
		return err
	}
	if err := b.db.checkpoint(ctx); err != nil {
		return err
	}
	quiet, end := context.WithTimeout(ctx, min(idleReads, 4*b.cpu))
	defer end()
	if err := b.readWhile(ctx, quiet, idle); err != nil {
		return err
	}
	importing, done := context.WithCancel(ctx)
	defer done()
	var group errgroup.Group
	group.Go(func() error { return b.readWhile(ctx, importing, busy) })
	began := time.Now()
	err = b.create(ctx, fmt.Sprintf("bench/import-%02d", n), "main", "", report, b.importResults())
	*took = append(*took, time.Since(began).Seconds())
	done()
	if readErr := group.Wait(); err == nil {
		err = readErr
	}
	return err
}

// waits are what readers waited in the rounds, in milliseconds, and how many requests failed.
type waits struct{ p50, p95, p99, failed sample }

// readWhile lets readers ask for pages until during ends.
func (b *bench) readWhile(ctx, during context.Context, w *waits) error {
	results := make(chan []time.Duration, readers)
	failures := make(chan int, readers)
	for range readers {
		go func() {
			waited, failed := b.reader(ctx, during)
			results <- waited
			failures <- failed
		}()
	}
	var all []time.Duration
	failed := 0
	for range readers {
		all = append(all, <-results...)
		failed += <-failures
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no reader got a page (%d errors)", failed)
	}
	slices.Sort(all)
	w.p50 = append(w.p50, micros(all[len(all)/2])/1000)
	w.p95 = append(w.p95, micros(all[len(all)*95/100])/1000)
	w.p99 = append(w.p99, micros(all[len(all)*99/100])/1000)
	w.failed = append(w.failed, float64(failed))
	return nil
}

// reader asks at fixed times, not as fast as it is answered: one that only waits would ask less just when it is slow.
func (b *bench) reader(ctx, during context.Context) (waited []time.Duration, failed int) {
	c := newClient(b.server.ready.HTTP, b.token, 1)
	defer c.close()
	next := time.Now()
	for {
		_, err := c.page(ctx, theQuery)
		switch {
		case ctx.Err() != nil:
			return waited, failed
		case err != nil:
			b.progress("reader: %v", err)
			failed++
		default:
			waited = append(waited, time.Since(next))
		}
		next = next.Add(time.Second / readsPerSecond)
		if time.Since(next) > time.Second { // far behind: what was missed counts once
			next = time.Now()
		}
		select {
		case <-during.Done():
			return waited, failed
		case <-time.After(time.Until(next)):
		}
	}
}

// measureLarge imports one report of largeBytes, written while it is sent, into a server that has just started.
func (b *bench) measureLarge(ctx context.Context) ([]row, error) {
	b.progress("import a report of %d MB", b.largeBytes>>20)
	if err := b.restart(ctx); err != nil {
		return nil, err
	}
	before, err := b.server.pid().memory("VmRSS")
	if err != nil {
		return nil, err
	}
	if err := b.server.pid().forgetPeak(); err != nil {
		return nil, err
	}
	out, in := io.Pipe()
	made := make(chan int, 1)
	go func() {
		results, err := writeReport(in, "benchscan", 1<<23, func(_ int, size int64) bool { return size < b.largeBytes-4096 })
		_ = in.CloseWithError(err) // nil is the end
		made <- results
	}()
	began := time.Now()
	answer, err := b.client.uploadFrom(ctx, "bench/large", "main", "", out)
	took := time.Since(began)
	_ = out.Close() // ends a writer whom nobody reads any more
	results := <-made
	if err != nil {
		return nil, err
	}
	if answer.Created+answer.Unchanged != results || answer.Created < results*99/100 {
		return nil, fmt.Errorf("upload of %d results: %+v", results, answer)
	}
	b.stored += answer.Created
	peak, err := b.server.pid().memory("VmHWM")
	if err != nil {
		return nil, err
	}
	return []row{{
		what: fmt.Sprintf("import of %d MB: peak memory (RSS)", b.largeBytes>>20), value: sample{peak / 1e6}, unit: megabytes, bar: within(peakBar, "MB"),
		note: fmt.Sprintf("%d findings in %.0f s; %.0f MB before it", answer.Created, took.Seconds(), before/1e6),
	}}, nil
}
