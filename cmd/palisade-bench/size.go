package main

import (
	"context"
	"fmt"
	"time"
)

// Limits of start and size.
const (
	readyBar = 1000 // milliseconds from process start until ready
	idleBar  = 80   // megabytes of an idle server
	diskBar  = 2.0  // gigabytes of a million findings with all indexes
)

// idleFor is the idle time before the memory is read.
const idleFor = 5 * time.Second

// measureSize restarts the server on the store several times.
func (b *bench) measureSize(ctx context.Context) ([]row, error) {
	var ready, idle sample
	for range b.rounds {
		if err := b.stop(); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := b.start(ctx); err != nil {
			return nil, err
		}
		ready = append(ready, micros(time.Since(began))/1000)
		select {
		case <-time.After(idleFor):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		resident, err := b.server.pid().memory("VmRSS")
		if err != nil {
			return nil, fmt.Errorf("memory is read from /proc, which only Linux has: %w", err)
		}
		idle = append(idle, resident/1e6)
	}
	return append([]row{
		{what: "start to ready", value: ready, unit: millis, bar: within(readyBar, "ms"), note: fmt.Sprintf("process and all, on %d findings", b.stored)},
		{what: "idle memory (RSS)", value: idle, unit: megabytes, bar: within(idleBar, "MB"), note: fmt.Sprintf("%s after the start", idleFor)},
	}, b.weight.rows()...), nil
}

// weight is the disk usage of the store.
type weight struct {
	imported int64 // bytes, on PostgreSQL before indexes were rebuilt
	bytes    int64
	findings int
}

func (w weight) rows() []row {
	disk := func(what string, bytes int64, limit *bar, more string) row {
		million := sample{float64(bytes) / 1e9 * 1e6 / float64(w.findings)}
		note := fmt.Sprintf("%.2f GB of %d, indexes, events and scans included%s", float64(bytes)/1e9, w.findings, more)
		return row{what: what, value: million, unit: gigabytes, bar: limit, note: note}
	}
	const what = "a million findings on disk"
	if w.imported == 0 {
		return []row{disk(what, w.bytes, within(diskBar, "GB"), "")}
	}
	return []row{
		disk(what+", as imported", w.imported, nil, ""),
		disk(what, w.bytes, within(diskBar, "GB"), "; after REINDEX, as by the nightly reindexdb of docs/scale.md"),
	}
}

// weigh runs before findings are decorated, which rewrites unrealistically many rows at once.
func (b *bench) weigh(ctx context.Context) error {
	err := b.db.settle(ctx)
	if err != nil {
		return err
	}
	b.weight.findings = b.stored
	if b.db.postgres() {
		if b.weight.imported, err = b.db.bytes(ctx); err != nil {
			return err
		}
		if err := b.db.rebuildIndexes(ctx); err != nil {
			return err
		}
	}
	b.weight.bytes, err = b.db.bytes(ctx)
	return err
}
