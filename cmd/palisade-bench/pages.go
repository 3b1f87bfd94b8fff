package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
)

// manyConnections is the concurrency at which pages are measured beside 1.
const manyConnections = 8

// pages are the targets that serve the same page.
type pages struct {
	children []*child
	clients  []*client
	conn     *grpc.ClientConn
}

// theQuery is the page that is measured: filters by status and by one severity.
var theQuery = pageQuery{Status: "open", Severity: "high"}

// measurePages compares the page of the server with a bare handler and with the plain reader.
func (b *bench) measurePages(ctx context.Context) (_ []row, err error) {
	p := &pages{}
	defer func() { err = errors.Join(err, p.close()) }()
	bare, plain, size, err := b.startComparisons(ctx, p)
	if err != nil {
		return nil, err
	}
	token := b.token
	over := func(what string, server *child, workers int, encoding string, want int64) *target {
		c := newClient(server.ready.HTTP, token, workers)
		p.clients = append(p.clients, c)
		return &target{what: what, server: server, workers: workers, do: c.get(findingsPath(theQuery), encoding, want)}
	}
	if p.conn, err = dial(b.server.ready.GRPC); err != nil {
		return nil, err
	}
	bareOne := over("bare handler, 1 connection", bare, 1, "", size)
	bareMany := over("bare handler, 8 connections", bare, manyConnections, "", size)
	one := over("page over HTTP, 1 connection", b.server, 1, "", size)
	many := over("page over HTTP, 8 connections", b.server, manyConnections, "", size)
	zipped := over("page over HTTP, gzip", b.server, manyConnections, "gzip", 0)
	rpc := &target{what: "page over gRPC, 8 streams", server: b.server, workers: manyConnections, do: list(p.conn, token, theQuery)}
	reader := over("plain reader, 8 connections", plain, manyConnections, "", size)

	targets := []*target{bareOne, one, bareMany, many, rpc, reader, zipped}
	for _, t := range targets {
		b.progress("calibrate: %s", t.what)
		if err := t.calibrate(ctx, b.cpu); err != nil {
			return nil, err
		}
	}
	if err := takeTurns(ctx, b.rounds, targets, b.progress); err != nil {
		return nil, err
	}
	if err := b.profile(ctx, many, rpc); err != nil {
		return nil, err
	}
	const httpBar = 25
	bareRow := bareOne.row()
	bareRow.note += fmt.Sprintf("; a page of %d KB", size/1000)
	return []row{
		bareRow, bareMany.row(),
		one.row().against(bareOne, "bare handler", atMost(httpBar)),
		many.row().against(bareMany, "bare handler", atMost(httpBar)),
		rpc.row().against(bareMany, "bare handler", nil),
		reader.row().against(bareMany, "bare handler", nil),
		many.row().against(reader, "plain reader", nil),
		zipped.row().against(many, "page over HTTP", nil),
	}, nil
}

// startComparisons runs the bare handler and the plain reader on the bytes that the server answers with.
func (b *bench) startComparisons(ctx context.Context, p *pages) (bare, plain *child, size int64, err error) {
	page, err := b.client.page(ctx, theQuery)
	if err != nil {
		return nil, nil, 0, err
	}
	if err := checkPage(page); err != nil {
		return nil, nil, 0, err
	}
	settings := b.settings
	settings.Query, settings.Page = theQuery, filepath.Join(b.dir, "page.json")
	if err := os.WriteFile(settings.Page, page, 0o600); err != nil {
		return nil, nil, 0, err
	}
	for _, role := range []string{roleBare, rolePlain} {
		c, err := start(ctx, role, settings, b.stderr)
		if err != nil {
			return nil, nil, 0, err
		}
		p.children = append(p.children, c)
	}
	return p.children[0], p.children[1], int64(len(page)), nil
}

// checkPage makes sure that what is measured is a full page of several projects.
func checkPage(page []byte) error {
	var decoded struct {
		Findings []struct {
			Repository struct {
				Name string `json:"name"`
			} `json:"repository"`
		} `json:"findings"`
	}
	if err := json.Unmarshal(page, &decoded); err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	projects := map[string]bool{}
	for _, f := range decoded.Findings {
		projects[f.Repository.Name] = true
	}
	if len(decoded.Findings) != pageSize || len(projects) < 2 {
		return fmt.Errorf("the page has %d findings of %d projects, want %d of several: raise --findings", len(decoded.Findings), len(projects), pageSize)
	}
	return nil
}

func (p *pages) close() error {
	var errs []error
	for _, c := range p.clients {
		c.close()
	}
	if p.conn != nil {
		errs = append(errs, p.conn.Close())
	}
	for _, c := range p.children {
		errs = append(errs, c.stop())
	}
	return errors.Join(errs...)
}

const (
	// deepPage is the page that deep reads end at, where there are so many.
	deepPage = 500
	// deepWindow is how many requests one figure of deep pages is taken from.
	deepWindow = 50
)

// measureDeep walks through a list and jumps into it. Every round and every jump asks for another "since", which all
// findings pass: another list as far as the server can know, so that it remembers nothing of it.
func (b *bench) measureDeep(ctx context.Context) ([]row, error) {
	deep := min(deepPage, b.findings*(suppressedEvery-1)/suppressedEvery/pageSize-1)
	window := min(deepWindow, deep)
	var first, walked, jumped sample
	for n := range b.rounds {
		b.progress("deep pages, round %d of %d", n+1, b.rounds)
		walk := 1 + n
		for page := 0; page <= deep-window; page++ {
			if _, err := b.client.page(ctx, pageQuery{Status: "open", Page: page, Since: walk}); err != nil {
				return nil, err
			}
		}
		kinds := []struct {
			into  *sample
			query func(i int) pageQuery
		}{
			{&first, func(i int) pageQuery { return pageQuery{Status: "open", Since: 1000 + n*deepWindow + i} }},
			{&walked, func(i int) pageQuery { return pageQuery{Status: "open", Page: deep - window + 1 + i, Since: walk} }},
			{&jumped, func(i int) pageQuery {
				return pageQuery{Status: "open", Page: deep, Since: 100_000 + n*deepWindow + i}
			}},
		}
		for _, kind := range kinds {
			cost, err := b.cpuOf(ctx, window, kind.query)
			if err != nil {
				return nil, err
			}
			*kind.into = append(*kind.into, cost)
		}
	}
	return []row{
		{what: "page 0", value: first, unit: cpuMicros, note: "filter by status only"},
		{what: fmt.Sprintf("page %d at the end of a walk", deep), value: walked, unit: cpuMicros, ratio: walked.over(first), base: "page 0"},
		{what: fmt.Sprintf("page %d by a jump", deep), value: jumped, unit: cpuMicros, ratio: jumped.over(first), base: "page 0"},
	}, nil
}

// cpuOf is what a request costs the server, in microseconds.
func (b *bench) cpuOf(ctx context.Context, requests int, query func(i int) pageQuery) (float64, error) {
	before, err := b.server.cpu()
	if err != nil {
		return 0, err
	}
	for i := range requests {
		if _, err := b.client.page(ctx, query(i)); err != nil {
			return 0, err
		}
	}
	after, err := b.server.cpu()
	return micros(after-before) / float64(requests), err
}

// elapsed writes a duration for people.
func elapsed(since time.Time) string { return time.Since(since).Round(100 * time.Millisecond).String() }
