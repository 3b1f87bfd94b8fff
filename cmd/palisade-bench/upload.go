package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// fillProjects, each on two refs, are the projects that fill the store.
	fillProjects = 20
	// fillResults is how many new findings each of the uploads that fill the store brings. So a page of one severity
	// holds findings of several projects, as it does where many projects are scanned every night.
	fillResults = 100
)

var fillRefs = []string{"main", "release"}

// fill uploads what the store holds before anything is measured: project by project, ref by ref, and again from the
// start. Each upload has a category of its own, so that none closes what another one found.
func (b *bench) fill(ctx context.Context) error {
	count := (b.findings + fillResults - 1) / fillResults
	for n := range count {
		if n%100 == 0 {
			b.progress("fill: %d of %d findings", n*fillResults, count*fillResults)
		}
		report, err := makeReport(uint64(n/len(fillRefs)), fillResults) // the refs of a project have the same findings
		if err != nil {
			return err
		}
		project := fmt.Sprintf("bench/project-%02d", n/len(fillRefs)%fillProjects)
		answer, err := b.client.upload(ctx, project, fillRefs[n%len(fillRefs)], fmt.Sprintf("night-%04d", n/len(fillRefs)/fillProjects), report)
		if err != nil {
			return err
		}
		if answer.Created != fillResults {
			return fmt.Errorf("fill: want %d findings created, got %+v", fillResults, answer)
		}
	}
	return b.db.settle(ctx)
}

// uploads are the figures of the rounds of uploads.
type uploads struct {
	first, again, raw sample // results a second
	cpu               sample // microseconds of the server per new result
	bytes             int    // of a report
}

// measureUploads sends new reports, each twice, and inserts the rows that they made into a copy of the tables.
func (b *bench) measureUploads(ctx context.Context) (u uploads, err error) {
	raw, err := copyTables(ctx, b.db, b.dir)
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, raw.close()) }()
	for n := range b.rounds {
		b.progress("uploads, round %d of %d", n+1, b.rounds)
		if err := b.uploadRound(ctx, raw, n, &u); err != nil {
			return u, err
		}
	}
	return u, nil
}

func (b *bench) uploadRound(ctx context.Context, raw *rawStore, n int, u *uploads) error {
	report, err := makeReport(uint64(1000+n), b.results)
	if err != nil {
		return err
	}
	u.bytes = len(report)
	project := fmt.Sprintf("bench/upload-%02d", n)
	before, err := b.server.cpu()
	if err != nil {
		return err
	}
	first, took, err := b.timedUpload(ctx, project, report)
	if err != nil {
		return err
	}
	after, err := b.server.cpu()
	if err != nil {
		return err
	}
	again, tookAgain, err := b.timedUpload(ctx, project, report)
	if err != nil {
		return err
	}
	if first.Created != b.results || again.Unchanged != b.results {
		return fmt.Errorf("upload of %d results: first %+v, again %+v", b.results, first, again)
	}
	tables, err := rowsOf(ctx, b.db, first.ScanID)
	if err != nil {
		return err
	}
	tookRaw, err := raw.insert(ctx, tables)
	if err != nil {
		return err
	}
	u.first = append(u.first, perSecond(b.results, took))
	u.again = append(u.again, perSecond(b.results, tookAgain))
	u.raw = append(u.raw, perSecond(b.results, tookRaw))
	u.cpu = append(u.cpu, micros(after-before)/float64(b.results))
	return nil
}

func (b *bench) timedUpload(ctx context.Context, project string, report []byte) (uploaded, time.Duration, error) {
	began := time.Now()
	answer, err := b.client.upload(ctx, project, "main", "", report)
	return answer, time.Since(began), err
}

func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

func (u uploads) rows() []row {
	return []row{
		{what: "prepared multi-row INSERT", value: u.raw, unit: rowsPerSecond, note: "findings and their events, one transaction"},
		{
			what: "upload, new findings", value: u.first, unit: rowsPerSecond, ratio: u.first.over(u.raw), base: "INSERT", bar: atLeast(0.25),
			note: fmt.Sprintf("report of %.1f MB; %.0f µs CPU a row", float64(u.bytes)/1e6, u.cpu.median()),
		},
		{what: "upload, the same again", value: u.again, unit: rowsPerSecond, ratio: u.again.over(u.first), base: "upload, new findings"},
	}
}
