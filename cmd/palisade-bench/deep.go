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
	// deepPage is the page that deep reads end at, where there are so many.
	deepPage = 5000
	// deepWindow is how many requests one figure of deep pages is taken from, and jumpWindow one of jumps.
	deepWindow, jumpWindow = 50, 20
	// deepRounds are enough: a walk to a deep page is long.
	deepRounds = 3
)

// deepFigures are those of the rounds, in microseconds.
type deepFigures struct{ first, begin, walked, jumped, byHand sample }

// measureDeep walks through a list and jumps into it. Every round and every jump asks for another "since", which all
// findings pass: another list as far as the server can know, so that it remembers nothing of it.
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

// deepest is the last full page of open findings, or deepPage.
func (b *bench) deepest(ctx context.Context) (int, error) {
	var open int
	err := b.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM findings WHERE deployment_id = (SELECT MIN(id) FROM deployments) AND issue_type = 'sast' AND status = 'open'").Scan(&open)
	return min(deepPage, open/pageSize-1), err
}

func (b *bench) deepRound(ctx context.Context, n, deep int, plain *child, hand *client, f *deepFigures) error {
	window, walk := min(deepWindow, deep), 1+n
	begin, err := b.cost(ctx, b.server, window, func(ctx context.Context, i int) error {
		_, err := b.client.page(ctx, pageQuery{Status: "open", Page: i, Since: walk})
		return err
	})
	if err != nil {
		return err
	}
	f.begin = append(f.begin, begin)
	for page := window; page <= deep-window; page++ {
		if _, err := b.client.page(ctx, pageQuery{Status: "open", Page: page, Since: walk}); err != nil {
			return err
		}
	}
	random := rand.New(rand.NewPCG(uint64(n), 2))
	targets := make([]int, jumpWindow)
	for i := range targets {
		targets[i] = deep/2 + random.IntN(deep/2+1)
	}
	ask := func(query func(i int) pageQuery) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			_, err := b.client.page(ctx, query(i))
			return err
		}
	}
	for _, kind := range []struct {
		into     *sample
		server   meter
		requests int
		do       func(context.Context, int) error
	}{
		{&f.first, b.server, window, ask(func(i int) pageQuery { return pageQuery{Status: "open", Since: 1000 + n*deepWindow + i} })},
		{&f.walked, b.server, window, ask(func(i int) pageQuery { return pageQuery{Status: "open", Page: deep - window + 1 + i, Since: walk} })},
		{&f.jumped, b.server, jumpWindow, ask(func(i int) pageQuery {
			return pageQuery{Status: "open", Page: targets[i], Since: 100_000 + n*deepWindow + i}
		})},
		{&f.byHand, plain, jumpWindow, func(ctx context.Context, i int) error {
			values := url.Values{"page_size": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(targets[i] * pageSize)}}
			return hand.get("/?"+values.Encode(), "", 0)(ctx)
		}},
	} {
		cost, err := b.cost(ctx, kind.server, kind.requests, kind.do)
		if err != nil {
			return err
		}
		*kind.into = append(*kind.into, cost)
	}
	return nil
}

func (f *deepFigures) rows(deep int, unit func(float64) string) []row {
	const walkBar, jumpBar = 1.3, 1
	jumps := fmt.Sprintf("random pages of %d to %d", deep/2, deep)
	return []row{
		{what: "page 0", value: f.first, unit: unit, note: "filter by status only"},
		{what: fmt.Sprintf("page %d at the end of a walk", deep), value: f.walked, unit: unit, ratio: f.walked.over(f.first), base: "page 0", bar: atMost(walkBar)},
		{what: "the same", value: f.walked, unit: unit, ratio: f.walked.over(f.begin), base: "the first pages of the walk", note: "which are read once, too, while page 0 is asked for again and again"},
		{what: "the skip by hand", value: f.byHand, unit: unit, note: "OFFSET along the covering index, deferred join, bodies of the side table; " + jumps},
		{what: "a deep page by a jump", value: f.jumped, unit: unit, ratio: f.jumped.over(f.byHand), base: "the skip by hand", bar: atMost(jumpBar), note: "the same pages, JSON and all"},
	}
}
