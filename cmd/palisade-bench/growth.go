package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// growthBar is the largest exponent that counts as flat or logarithmic: twice the findings cost at most a tenth
	// more.
	growthBar = 0.12
	// growthRounds is the number of rounds per size.
	growthRounds = 3
	// growthRequests is the number of pages per figure.
	growthRequests = 200
)

// growthLine is one figure at every size.
type growthLine struct {
	what, note string
	unit       func(float64) string
	bar        *bar
	at         []float64 // findings in the store
	cost       sample    // at these sizes
}

// grow fills the store. If growth is measured, it takes the same figures at each size.
func (b *bench) grow(ctx context.Context) ([]row, error) {
	lines := b.growthLines()
	sizes := []int{b.findings}
	if b.wants(partGrowth) {
		for _, size := range b.growth {
			if size < b.findings {
				sizes = append(sizes, size)
			}
		}
	}
	slices.Sort(sizes)
	for _, size := range slices.Compact(sizes) {
		if err := b.fill(ctx, size); err != nil {
			return nil, err
		}
		if err := b.db.settle(ctx); err != nil {
			return nil, err
		}
		if b.wants(partGrowth) {
			b.progress("growth: %d findings", size)
			if err := b.growthPoint(ctx, size, lines); err != nil {
				return nil, err
			}
		}
	}
	// The last uploads were of one project, but the first page needs findings of many.
	if err := b.fill(ctx, b.stored+2*fillProjects*fillResults); err != nil {
		return nil, err
	}
	if err := b.weigh(ctx); err != nil {
		return nil, err
	}
	if err := b.decorate(ctx); err != nil {
		return nil, err
	}
	var rows []row
	if b.wants(partGrowth) {
		for _, line := range lines {
			rows = append(rows, line.row())
		}
	}
	return rows, nil
}

func (b *bench) growthLines() []*growthLine {
	unit, flat := b.costUnit(), atMostPower(growthBar)
	return []*growthLine{
		{what: "page of 100", unit: unit, bar: flat},
		{what: "deep page at the end of a session", unit: unit, bar: flat, note: fmt.Sprintf("page %d, or the last of a smaller store", deepPage)},
		{what: "deep page by a jump", unit: unit, note: "page 5000, or the last of a smaller store: what is counted grows with its depth"},
		{what: "single triage", unit: unit, bar: flat},
		{what: fmt.Sprintf("upload of %d new findings, a row", b.growthResults()), unit: unit, bar: flat},
	}
}

func (b *bench) growthResults() int { return min(advanceResults, b.results) }

// growthPoint measures each line at the current size of the store: first reads, then changes, and last uploads, which
// enlarge it.
func (b *bench) growthPoint(ctx context.Context, size int, lines []*growthLine) error {
	deep, err := b.deepest(ctx)
	if err != nil {
		return err
	}
	window := min(deepWindow, deep)
	ask := func(query func(n, i int) pageQuery) func(context.Context, int, int) error {
		return func(ctx context.Context, n, i int) error {
			_, err := b.client.page(ctx, query(n, i))
			return err
		}
	}
	var ids []int64
	var report []byte
	nothing := func(int) error { return nil }
	for i, measure := range []struct {
		before   func(n int) error
		requests int
		do       func(ctx context.Context, n, i int) error
		rows     float64 // rows per request
	}{
		{nothing, growthRequests, ask(func(int, int) pageQuery { return measuredQuery }), 1},
		{func(n int) error { return b.walk(ctx, size+n, deep-window) }, window, ask(func(n, i int) pageQuery {
			return pageQuery{Status: "open", Page: deep - window + 1 + i, Since: size + n}
		}), 1},
		{nothing, jumpWindow, ask(func(n, i int) pageQuery {
			return pageQuery{Status: "open", Page: deep, Since: size + 100*(n+1) + i}
		}), 1},
		{func(int) (err error) { ids, err = b.undecided(ctx, growthRequests/2); return err }, growthRequests / 2, func(ctx context.Context, _, i int) error {
			_, err := b.client.triage(ctx, ids[i%len(ids):i%len(ids)+1], "reviewing")
			return err
		}, 1},
		{func(n int) (err error) {
			report, err = makeReport(uint64(1<<24+size*10+n), b.growthResults())
			return err
		}, 1, func(ctx context.Context, n, _ int) error {
			return b.create(ctx, "bench/growth-"+strconv.Itoa(size), "main", strconv.Itoa(n), report, b.growthResults())
		}, float64(b.growthResults())},
	} {
		var figures, stored sample
		for n := range min(b.rounds, growthRounds) {
			if err := measure.before(n); err != nil {
				return fmt.Errorf("%s: %w", lines[i].what, err)
			}
			stored = append(stored, float64(b.stored))
			cost, err := b.cost(ctx, b.server, measure.requests, func(ctx context.Context, i int) error { return measure.do(ctx, n, i) })
			if err != nil {
				return fmt.Errorf("%s: %w", lines[i].what, err)
			}
			figures = append(figures, cost/measure.rows)
		}
		lines[i].at = append(lines[i].at, stored.median())
		lines[i].cost = append(lines[i].cost, figures.median())
	}
	return nil
}

// walk reads the pages up to the given one in the list of open findings with this since.
func (b *bench) walk(ctx context.Context, since, to int) error {
	for page := 0; page <= to; page++ {
		if _, err := b.client.page(ctx, pageQuery{Status: "open", Page: page, Since: since}); err != nil {
			return err
		}
	}
	return nil
}

// row shows the figure at the largest size, the exponent, and the other figures in the note.
func (l *growthLine) row() row {
	var parts []string
	for i, size := range l.at {
		parts = append(parts, fmt.Sprintf("%s at %s", l.unit(l.cost[i]), thousands(size)))
	}
	if l.note != "" {
		parts = append(parts, l.note)
	}
	r := row{what: l.what, value: l.cost[len(l.cost)-1:], unit: l.unit, note: strings.Join(parts, "; "), bar: l.bar, base: "findings, as a power"}
	if k, ok := exponent(l.at, l.cost); ok {
		r.ratio, r.power = sample{k}, true
	} else {
		r.bar = nil // one size has no growth
	}
	return r
}

// exponent fits cost = a · size^k by least squares on the logarithms.
func exponent(sizes []float64, costs sample) (k float64, ok bool) {
	var n, x, y, xx, xy float64
	for i, size := range sizes {
		if size <= 0 || costs[i] <= 0 {
			continue
		}
		u, v := math.Log(size), math.Log(costs[i])
		n, x, y, xx, xy = n+1, x+u, y+v, xx+u*u, xy+u*v
	}
	spread := n*xx - x*x
	if n < 2 || spread <= 0 {
		return 0, false
	}
	return (n*xy - x*y) / spread, true
}

// thousands formats a size for people.
func thousands(v float64) string {
	if v >= 1e6 {
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + " M"
	}
	return strconv.FormatFloat(v/1e3, 'g', 3, 64) + " k"
}
