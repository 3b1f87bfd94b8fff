package main

import (
	"context"
	"fmt"
	"time"
)

// uploads has the figures of the rounds of uploads.
type uploads struct {
	first, again, raw sample // results per second
	cpu, cpuAgain     sample // microseconds of the server per result
	bytes             int    // of a report
}

// measureUploads uploads new reports, each twice, and inserts the same rows again in SQL.
func (b *bench) measureUploads(ctx context.Context) ([]row, error) {
	if err := b.dropPlain(ctx); err != nil {
		return nil, err
	}
	var u uploads
	for n := range b.rounds {
		b.progress("uploads, round %d of %d", n+1, b.rounds)
		if err := b.uploadRound(ctx, n, &u); err != nil {
			return nil, err
		}
	}
	return u.rows(), b.profileUploads(ctx)
}

func (b *bench) uploadRound(ctx context.Context, n int, u *uploads) error {
	report, err := makeReport(uint64(1<<20+n), b.results)
	if err != nil {
		return err
	}
	u.bytes = len(report)
	rawProject, err := b.rawProject(ctx, n)
	if err != nil {
		return err
	}
	project := fmt.Sprintf("bench/upload-%02d", n)
	first, took, cpu, err := b.timedUpload(ctx, project, report)
	if err != nil {
		return err
	}
	again, tookAgain, cpuAgain, err := b.timedUpload(ctx, project, report)
	if err != nil {
		return err
	}
	if first.Created != b.results || again.Unchanged != b.results {
		return fmt.Errorf("upload of %d results: first %+v, again %+v", b.results, first, again)
	}
	b.stored += b.results
	tookRaw, err := b.insertRaw(ctx, first.ScanID, rawProject)
	if err != nil {
		return err
	}
	u.first = append(u.first, perSecond(b.results, took))
	u.again = append(u.again, perSecond(b.results, tookAgain))
	u.raw = append(u.raw, perSecond(b.results, tookRaw))
	u.cpu = append(u.cpu, micros(cpu)/float64(b.results))
	u.cpuAgain = append(u.cpuAgain, micros(cpuAgain)/float64(b.results))
	return nil
}

// rawProject creates the project for the rows that are inserted in SQL, and returns its id.
func (b *bench) rawProject(ctx context.Context, n int) (id int64, err error) {
	name := fmt.Sprintf("bench/by-hand-%02d", n)
	report, err := makeReport(uint64(1<<21+n), 1)
	if err != nil {
		return 0, err
	}
	if err := b.create(ctx, name, "main", "", report, 1); err != nil {
		return 0, err
	}
	err = b.db.QueryRowContext(ctx, "SELECT id FROM projects WHERE name = "+b.db.parameter(1), name).Scan(&id)
	return id, err
}

// timedUpload returns the duration of an upload and its CPU time on the server.
func (b *bench) timedUpload(ctx context.Context, project string, report []byte) (answer uploaded, took, cpu time.Duration, err error) {
	if err := b.db.checkpoint(ctx); err != nil {
		return answer, 0, 0, err
	}
	before, err := b.server.cpu()
	if err != nil {
		return answer, 0, 0, err
	}
	began := time.Now()
	if answer, err = b.client.upload(ctx, project, "main", "", report); err != nil {
		return answer, 0, 0, err
	}
	took = time.Since(began)
	after, err := b.server.cpu()
	return answer, took, after - before, err
}

func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

func (u uploads) rows() []row {
	const newBar, againBar = 0.5, 3
	return []row{
		{what: "prepared multi-row INSERT", value: u.raw, unit: rowsPerSecond, note: "the same findings and events, same file, one transaction"},
		{
			what: "upload, new findings", value: u.first, unit: rowsPerSecond, ratio: u.first.over(u.raw), base: "INSERT", bar: atLeast(newBar),
			note: fmt.Sprintf("report of %.1f MB; %.0f µs CPU a row", float64(u.bytes)/1e6, u.cpu.median()),
		},
		{
			what: "upload, the same again", value: u.again, unit: rowsPerSecond, ratio: u.again.over(u.first), base: "upload, new findings", bar: atLeast(againBar),
			note: fmt.Sprintf("%.0f µs CPU a row", u.cpuAgain.median()),
		},
	}
}
