package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// importResults is the number of findings in an import that runs concurrently with readers.
	importResults = 100_000
	// readers is the number of clients that each request readsPerSecond pages per second.
	readers, readsPerSecond = 4, 50
	// decisionsPerSecond is the rate of one client in another deployment.
	decisionsPerSecond = 10
	// idleVisits is the duration of the measurement without an import.
	idleVisits = 4 * time.Second
	// importRounds is small: each round adds importResults findings.
	importRounds = 3
)

// Limits of large imports.
const (
	readP50Bar  = 1.6
	readP99Bar  = 10
	readErrsBar = 0
)

// beside has the waiting times of other clients during an import, or without one.
type beside struct{ pages, decisions waits }

// measureImport reads pages and triages during an import of 100,000 findings, and then imports the largest report that
// the server accepts.
func (b *bench) measureImport(ctx context.Context) ([]row, error) {
	if err := b.dropPlain(ctx); err != nil {
		return nil, err
	}
	n, err := b.settleNeighbour(ctx)
	if err != nil {
		return nil, err
	}
	// Bulk triage leaves dead rows, which the database itself would remove within minutes.
	if err := b.db.settle(ctx); err != nil {
		return nil, err
	}
	var idle, busy beside
	var took sample
	for round := range min(b.rounds, importRounds) {
		b.progress("readers during an import, round %d", round+1)
		if err := b.importRound(ctx, round, n, &idle, &busy, &took); err != nil {
			return nil, err
		}
	}
	rows := append(b.readRows(&idle.pages, &busy.pages, took), decisionRows(&idle.decisions, &busy.decisions)...)
	if b.largeBytes == 0 {
		return rows, nil
	}
	large, err := b.measureLarge(ctx, n)
	return append(rows, large...), err
}

func (b *bench) importResults() int { return min(importResults, 10*b.results) }

func (b *bench) importRound(ctx context.Context, round int, n *neighbour, idle, busy *beside, took *sample) error {
	report, err := makeReport(uint64(1<<22+round), b.importResults())
	if err != nil {
		return err
	}
	if err := b.db.checkpoint(ctx); err != nil {
		return err
	}
	quiet, end := context.WithTimeout(ctx, min(idleVisits, 4*b.cpu))
	defer end()
	if err := b.standBy(ctx, quiet, n, idle); err != nil {
		return err
	}
	importing, done := context.WithCancel(ctx)
	defer done()
	var group errgroup.Group
	group.Go(func() error { return b.standBy(ctx, importing, n, busy) })
	began := time.Now()
	err = b.create(ctx, fmt.Sprintf("bench/import-%02d", round), "main", "", report, b.importResults())
	*took = append(*took, time.Since(began).Seconds())
	done()
	if readErr := group.Wait(); err == nil {
		err = readErr
	}
	return err
}

// standBy runs readers of the same deployment and a triaging client of another one until during ends.
func (b *bench) standBy(ctx, during context.Context, n *neighbour, into *beside) error {
	var group errgroup.Group
	group.Go(func() error { return b.visitWhile(ctx, during, pageReaders(b.own()), &into.pages) })
	group.Go(func() error {
		one := visitors{what: "triage", of: n.tenant, clients: 1, perSecond: decisionsPerSecond, ask: n.decide}
		return b.visitWhile(ctx, during, one, &into.decisions)
	})
	return group.Wait()
}

// noImport is the baseline for clients during an import.
const noImport = "idle"

func (b *bench) readRows(idle, busy *waits, took sample) []row {
	note := fmt.Sprintf("%d readers, %d pages a second each, on cores that they share with server and import", readers, readsPerSecond)
	return []row{
		{what: "readers, idle: p50", value: idle.p50, unit: millis, note: note},
		{what: "readers, idle: p95", value: idle.p95, unit: millis},
		{what: "readers, idle: p99", value: idle.p99, unit: millis},
		{what: "readers during an import: p50", value: busy.p50, unit: millis, ratio: busy.p50.over(idle.p50), base: noImport, bar: atMost(readP50Bar), note: fmt.Sprintf("%d findings in %.1f s", b.importResults(), took.median())},
		{what: "readers during an import: p95", value: busy.p95, unit: millis, ratio: busy.p95.over(idle.p95), base: noImport},
		{what: "readers during an import: p99", value: busy.p99, unit: millis, ratio: busy.p99.over(idle.p99), base: noImport, bar: atMost(readP99Bar)},
		{what: "readers during an import: errors", value: busy.failed, unit: plainNumber, bar: always(readErrsBar, " ")},
	}
}

// decisionRows have no limits: on SQLite all writers take turns, so a decision may wait for the import.
func decisionRows(idle, busy *waits) []row {
	beside := func(what string, idle, busy sample, more string) row {
		return row{what: "triage during an import: " + what, value: busy, unit: millis, ratio: busy.over(idle), base: noImport, note: "idle: " + spread(idle, millis) + more}
	}
	return []row{
		beside("p50", idle.p50, busy.p50, fmt.Sprintf("; one client of another deployment, %d decisions a second", decisionsPerSecond)),
		beside("p95", idle.p95, busy.p95, ""),
		beside("slowest", idle.slowest, busy.slowest, ""),
		{what: "triage during an import: errors", value: busy.failed, unit: plainNumber, note: "idle: " + spread(idle.failed, plainNumber)},
	}
}
