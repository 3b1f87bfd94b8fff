package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/grpc"
)

const (
	// manyConnections is the higher of the two concurrency levels of page requests; the lower one is 1.
	manyConnections = 16
	// largePage is the largest page size, and largeConnections the number of clients that request it concurrently.
	largePage, largeConnections = 3000, 4
)

// pages are the targets that serve the same page.
type pages struct {
	children []*child
	clients  []*client
	conn     *grpc.ClientConn
}

// measuredQuery is the measured page, filtered by status and one severity.
var measuredQuery = pageQuery{Status: "open", Severity: "high"}

// pageTargets are the compared targets, with manyConnections unless the name says otherwise.
type pageTargets struct {
	bareOne, bare, plain, plainLarge, one, many, rpc, zipped, large, rpcLarge *target
	size                                                                      int64 // of the page in bytes
	largeRows                                                                 int
}

func (t *pageTargets) all() []*target {
	return []*target{t.bareOne, t.one, t.bare, t.plain, t.many, t.rpc, t.zipped, t.plainLarge, t.large, t.rpcLarge}
}

// measurePages compares the server's page with a bare handler and with the plain reader.
func (b *bench) measurePages(ctx context.Context) (_ []row, err error) {
	if err := b.fillPlain(ctx); err != nil {
		return nil, err
	}
	p := &pages{}
	defer func() { err = errors.Join(err, p.close()) }()
	t, err := b.pageTargets(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, one := range t.all() {
		b.progress("calibrate: %s", one.what)
		if err := one.calibrate(ctx, b.cpu); err != nil {
			return nil, err
		}
	}
	if err := takeTurns(ctx, b.rounds, t.all(), b.progress); err != nil {
		return nil, err
	}
	if err := errors.Join(b.profilePages(ctx, "page-http", t.many), b.profilePages(ctx, "page-grpc", t.rpc)); err != nil {
		return nil, err
	}
	return t.rows(), nil
}

// pageTargets starts the bare handler and the plain reader, and checks that all return the same bytes.
func (b *bench) pageTargets(ctx context.Context, p *pages) (*pageTargets, error) {
	t := &pageTargets{}
	bare, plain, size, err := b.startComparisons(ctx, p)
	if err != nil {
		return nil, err
	}
	if p.conn, err = dial(b.server.ready.GRPC); err != nil {
		return nil, err
	}
	large := measuredQuery
	large.Size = min(largePage, b.findings/10) // a small store has fewer
	largeBytes, err := b.client.page(ctx, large)
	if err != nil {
		return nil, err
	}
	over := func(what string, server *child, workers int, q pageQuery, encoding string, want int64) *target {
		c := newClient(server.ready.HTTP, b.token, workers)
		p.clients = append(p.clients, c)
		return &target{what: what, server: server, workers: workers, do: c.get(c.findingsPath(q), encoding, want)}
	}
	t.size, t.largeRows = size, large.Size
	t.bareOne = over("bare handler, 1 connection", bare, 1, measuredQuery, "", size)
	t.bare = over("bare handler", bare, manyConnections, measuredQuery, "", size)
	t.plain = over("plain reader", plain, manyConnections, measuredQuery, "", size)
	t.plainLarge = over("plain reader, "+strconv.Itoa(large.Size)+" rows", plain, largeConnections, large, "", int64(len(largeBytes)))
	t.one = over("page over HTTP, 1 connection", b.server, 1, measuredQuery, "", size)
	t.many = over("page over HTTP", b.server, manyConnections, measuredQuery, "", size)
	t.zipped = over("page over HTTP, gzip", b.server, manyConnections, measuredQuery, "gzip", 0)
	t.large = over("page over HTTP, "+strconv.Itoa(large.Size)+" rows", b.server, largeConnections, large, "", int64(len(largeBytes)))
	t.rpc = &target{what: "page over gRPC", server: b.server, workers: manyConnections, do: list(p.conn, b.token, measuredQuery)}
	t.rpcLarge = &target{what: "page over gRPC, " + strconv.Itoa(large.Size) + " rows", server: b.server, workers: largeConnections, do: list(p.conn, b.token, large)}
	for _, one := range []*target{t.plainLarge, t.large, t.rpcLarge} {
		one.least = minRequests / 10
	}
	return t, nil
}

func (t *pageTargets) rows() []row {
	const httpBar, rpcBar, tailBar = 2.25, 1.9, 5
	bareRow := t.bareOne.row()
	bareRow.note += fmt.Sprintf("; a page of %d KB", t.size/1000)
	tail := row{what: "page over HTTP: p99 against p50", value: scaled(t.many.p99, 0.001), unit: millis, ratio: t.many.tail(), base: "its p50", bar: atMost(tailBar)}
	tail.note = fmt.Sprintf("%d connections; load and server share the cores", manyConnections)
	return []row{
		bareRow, t.bare.row(),
		t.plain.row().against(t.bare, "bare handler", nil),
		t.one.row().against(t.bareOne, "bare handler", nil),
		t.many.row().against(t.bare, "bare handler", nil),
		t.many.row().against(t.plain, "plain reader", atMost(httpBar)),
		t.rpc.row().against(t.plain, "plain reader", atMost(rpcBar)),
		tail,
		t.zipped.row().against(t.many, "page over HTTP", nil),
		t.plainLarge.row(),
		t.large.row().against(t.plainLarge, "plain reader", atMost(httpBar)),
		t.rpcLarge.row().against(t.plainLarge, "plain reader", atMost(rpcBar)),
		perRow("a row of a large page over HTTP", t.large, t.many, t.largeRows),
		perRow("a row of a large page over gRPC", t.rpcLarge, t.rpc, t.largeRows),
	}
}

// perRow compares the cost per row of a large page with a page of 100.
func perRow(what string, large, hundred *target, rows int) row {
	each := scaled(large.cpu, 1/float64(rows))
	return row{what: what, value: each, unit: cpuMicrosFine, ratio: each.over(scaled(hundred.cpu, 1.0/pageSize)), base: "a row of a page of 100", note: "of a page that fits into the caches of a processor"}
}

// startComparisons starts the bare handler and the plain reader on the server's page.
func (b *bench) startComparisons(ctx context.Context, p *pages) (bare, plain *child, size int64, err error) {
	page, err := b.client.page(ctx, measuredQuery)
	if err != nil {
		return nil, nil, 0, err
	}
	if err := checkPage(page); err != nil {
		return nil, nil, 0, err
	}
	settings := b.settings
	settings.Query, settings.Page = measuredQuery, filepath.Join(b.dir, "page.json")
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

// checkPage checks that the measured page is full and has several projects.
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
