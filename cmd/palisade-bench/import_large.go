package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// largeIdle is the duration of the measurement before the largest import, after warming up for warmUp.
	largeIdle, warmUp = 10 * time.Second, 2 * time.Second

	peakBar        = 300 // megabytes of the server during the import of the largest report
	neighbourP95   = 1.2 // effect of an upload on another tenant
	largeSeed      = 1 << 23
	largeMostSpare = 4096 // maximum bytes of the end of a report and its last result
)

// measureLarge imports one report of largeBytes into a freshly started server, while another deployment reads.
func (b *bench) measureLarge(ctx context.Context, n *neighbour) (_ []row, err error) {
	b.progress("write a report of %d MB", b.largeBytes>>20)
	file := filepath.Join(b.dir, "large.sarif")
	defer func() { err = errors.Join(err, os.Remove(file)) }()
	results, err := writeLarge(file, b.largeBytes)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(b.restart(ctx), b.db.checkpoint(ctx)); err != nil {
		return nil, err
	}
	b.progress("readers of another deployment, idle")
	var warming, idle, busy waits
	for _, phase := range []struct {
		length time.Duration
		into   *waits
	}{{min(warmUp, 2*b.cpu), &warming}, {min(largeIdle, 10*b.cpu), &idle}} {
		quiet, end := context.WithTimeout(ctx, phase.length)
		err := b.visitWhile(ctx, quiet, pageReaders(n.tenant), phase.into)
		end()
		if err != nil {
			return nil, err
		}
	}
	before, err := b.server.pid().memory("VmRSS")
	if err != nil {
		return nil, err
	}
	if err := b.server.pid().forgetPeak(); err != nil {
		return nil, err
	}
	took, err := b.importLarge(ctx, file, results, n, &busy)
	if err != nil {
		return nil, err
	}
	peak, err := b.server.pid().memory("VmHWM")
	if err != nil {
		return nil, err
	}
	size := fmt.Sprintf("import of %d MB", b.largeBytes>>20)
	return append([]row{{
		what: size + ": peak memory (RSS)", value: sample{peak / 1e6}, unit: megabytes, bar: within(peakBar, "MB"),
		note: fmt.Sprintf("%d findings in %.0f s; %.0f MB before it; readers of another deployment during it", results, took.Seconds(), before/1e6),
	}}, neighbourRows(size, n, &idle, &busy)...), nil
}

// writeLarge writes the report beforehand and returns its number of results. Generating it during the upload would take
// CPU time from the server and its readers; real uploads come from other machines.
func writeLarge(name string, size int64) (results int, err error) {
	file, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	results, err = writeReport(file, "benchscan", largeSeed, func(_ int, written int64) bool { return written < size-largeMostSpare })
	// Otherwise the disk would still be busy with it during the measurement.
	return results, errors.Join(err, file.Sync())
}

// importLarge uploads the report while readers of the neighbour request pages.
func (b *bench) importLarge(ctx context.Context, name string, results int, n *neighbour, busy *waits) (took time.Duration, err error) {
	b.progress("import a report of %d MB", b.largeBytes>>20)
	file, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close() // the client has closed it, unless it could not start
	importing, done := context.WithCancel(ctx)
	defer done()
	var group errgroup.Group
	group.Go(func() error { return b.visitWhile(ctx, importing, pageReaders(n.tenant), busy) })
	began := time.Now()
	answer, err := b.client.uploadFrom(ctx, "bench/large", "main", "", file)
	took = time.Since(began)
	err = errors.Join(err, b.db.moved(ctx)) // readers may notice the checkpoint, too
	done()
	if err := errors.Join(err, group.Wait()); err != nil {
		return 0, err
	}
	if answer.Created+answer.Unchanged != results || answer.Created < results*99/100 {
		return 0, fmt.Errorf("upload of %d results: %+v", results, answer)
	}
	b.stored += answer.Created
	return took, nil
}

func neighbourRows(size string, n *neighbour, idle, busy *waits) []row {
	const who = "readers of another deployment, "
	during := who + "during the " + size + ": "
	return []row{
		{what: who + "idle: p50", value: idle.p50, unit: millis, note: fmt.Sprintf("as above, in a deployment of %d findings of its own", n.findings)},
		{what: who + "idle: p95", value: idle.p95, unit: millis},
		{what: who + "idle: p99", value: idle.p99, unit: millis},
		{what: during + "p50", value: busy.p50, unit: millis, ratio: busy.p50.over(idle.p50), base: noImport},
		{what: during + "p95", value: busy.p95, unit: millis, ratio: busy.p95.over(idle.p95), base: noImport, bar: atMost(neighbourP95), note: "of one import"},
		{what: during + "p99", value: busy.p99, unit: millis, ratio: busy.p99.over(idle.p99), base: noImport},
		{what: during + "errors", value: busy.failed, unit: plainNumber, bar: always(readErrsBar, " ")},
	}
}
