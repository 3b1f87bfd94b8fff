package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
)

const (
	// deepPage is the page at which deep reads end, if there are enough pages.
	deepPage = 5000
	// deepWindow is the number of requests per figure of deep pages, jumpWindow of jumps, and walkWindow of the start
	// or the end of a listing session.
	deepWindow, jumpWindow, walkWindow = 50, 20, 100
	// deepRounds is small, because reading up to a deep page takes long.
	deepRounds = 3
	// jumpTurns is the number of turns per round: jumps are short, and alternate with the offset baseline more often.
	jumpTurns = 5
	// jumpedSince is the first "since" of jumps. No other part of the benchmark uses it.
	jumpedSince = 10_000_000
)

// deepFigures has the figures of the rounds, in microseconds.
type deepFigures struct{ first, begin, walked, jumped, jumpedAgain, byHand sample }

// measureDeep reads a list page by page and jumps into it. Every round and every jump uses a different "since" that
// matches all findings: it is a new list for the server, without any cached cursor.
func (b *bench) measureDeep(ctx context.Context) (_ []row, err error) {
	if err := b.fillPlain(ctx); err != nil {
		return nil, err
	}
	settings := b.settings
	settings.Query = pageQuery{Status: "open"}
	plain, err := start(ctx, rolePlain, settings, b.stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plain.stop()) }()
	hand := newClient(plain.ready.HTTP, "", 1)
	defer hand.close()
	deep, err := b.deepest(ctx)
	if err != nil {
		return nil, err
	}
	var f deepFigures
	for n := range min(b.rounds, deepRounds) {
		b.progress("deep pages, round %d", n+1)
		if err := b.deepRound(ctx, n, deep, plain, hand, &f); err != nil {
			return nil, err
		}
	}
	crawled, err := b.measureCrawl(ctx)
	return append(f.rows(deep, b.costUnit()), crawled...), err
}

// deepest returns the last full page of open findings, at most deepPage.
func (b *bench) deepest(ctx context.Context) (int, error) {
	last, err := b.lastPage(ctx)
	return min(deepPage, last), err
}

// lastPage returns the last full page of open findings.
func (b *bench) lastPage(ctx context.Context) (int, error) {
	var open int
	err := b.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM findings WHERE deployment_id = (SELECT MIN(id) FROM deployments) AND issue_type = 'sast' AND status = 'open'").Scan(&open)
	return open/pageSize - 1, err
}

// walkWindows returns the positions of the two windows of a listing session: equal numbers of pages at its start and
// its end.
func walkWindows(deep int) (size, last int) {
	size = max(1, min(walkWindow, (deep+1)/2))
	return size, deep - size + 1
}

// deepKind is one kind of request in a round.
type deepKind struct {
	into     *sample // nil: not measured
	server   meter
	requests int
	do       func(context.Context, int) error
}

// deepRound reads from the first page to the deep one, and compares the pages at the end of the session with the pages
// at its start. Both are read once, in order, with the same filter, and after other pages of the same list. Then it
// requests page 0 repeatedly, and jumps: into a new list for each page, and to the same pages of one list.
func (b *bench) deepRound(ctx context.Context, n, deep int, plain *child, hand *client, f *deepFigures) error {
	window, last := walkWindows(deep)
	walk := 1 + n
	ask := func(query func(i int) pageQuery) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			_, err := b.client.page(ctx, query(i))
			return err
		}
	}
	from := func(first, since int) func(context.Context, int) error {
		return ask(func(i int) pageQuery { return pageQuery{Status: "open", Page: first + i, Since: since} })
	}
	kinds := []deepKind{
		// Both windows of the session follow the same number of pages in the middle of a session, to have the same
		// cache state.
		{nil, b.server, window, from(deep/2, 500+n)},
		{&f.begin, b.server, window, from(0, walk)},
		{nil, b.server, last - window, from(window, walk)},
		{&f.walked, b.server, window, from(last, walk)},
		{&f.first, b.server, deepWindow, ask(func(i int) pageQuery { return pageQuery{Status: "open", Since: 1000 + n*deepWindow + i} })},
	}
	for turn := n * jumpTurns; turn < (n+1)*jumpTurns; turn++ {
		random := rand.New(rand.NewPCG(uint64(turn), 2))
		targets := make([]int, jumpWindow)
		for i := range targets {
			targets[i] = deep/2 + random.IntN(deep/2+1)
		}
		kinds = append(kinds,
			deepKind{&f.jumped, b.server, jumpWindow, ask(func(i int) pageQuery {
				return pageQuery{Status: "open", Page: targets[i], Since: jumpedSince + turn*jumpWindow + i}
			})},
			deepKind{&f.byHand, plain, jumpWindow, func(ctx context.Context, i int) error {
				values := url.Values{"page_size": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(targets[i] * pageSize)}}
				return hand.get("/?"+values.Encode(), "", 0)(ctx)
			}},
			deepKind{&f.jumpedAgain, b.server, jumpWindow, ask(func(i int) pageQuery {
				return pageQuery{Status: "open", Page: targets[i], Since: 2*jumpedSince + turn}
			})},
		)
	}
	for _, kind := range kinds {
		cost, err := b.cost(ctx, kind.server, kind.requests, kind.do)
		if err != nil {
			return err
		}
		if kind.into != nil {
			*kind.into = append(*kind.into, cost)
		}
	}
	return nil
}

func (f *deepFigures) rows(deep int, unit func(float64) string) []row {
	const walkBar, jumpBar = 1.3, 1
	window, last := walkWindows(deep)
	walked := fmt.Sprintf("page %d at the end of a session", deep)
	jumps := fmt.Sprintf("random pages of %d to %d", deep/2, deep)
	return []row{
		{what: fmt.Sprintf("pages 0 to %d of a session", window-1), value: f.begin, unit: unit, note: "each read once; filter by status only"},
		{what: walked, value: f.walked, unit: unit, ratio: f.walked.over(f.begin), base: "the first pages of the same session", bar: atMost(walkBar), note: fmt.Sprintf("pages %d to %d, each read once", last, deep)},
		{what: "page 0 again and again", value: f.first, unit: unit, note: "its rows are in every cache, unlike any page of a session"},
		{what: walked, value: f.walked, unit: unit, ratio: f.walked.over(f.first), base: "page 0 again and again", bar: atMost(walkBar), note: "its rows are read once, out of the file, like every page of a session"},
		{what: "the handwritten skip", value: f.byHand, unit: unit, note: "OFFSET along the covering index, deferred join, bodies of the side table; " + jumps},
		{what: "a deep page by a jump", value: f.jumped, unit: unit, ratio: f.jumped.over(f.byHand), base: "the handwritten skip", bar: atMost(jumpBar), note: "the same pages, with their JSON, each of a separate list"},
		{what: "deep pages by jumps", value: f.jumpedAgain, unit: unit, ratio: f.jumpedAgain.over(f.byHand), base: "the handwritten skip", bar: atMost(jumpBar), note: "the same pages of one list, one after the other, its first among them"},
	}
}
