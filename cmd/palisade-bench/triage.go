package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of triage.
const (
	groupBar    = 1.5 // throughput of manyClients relative to one client
	slowestBar  = 100 // milliseconds of the slowest decision of any client
	bulkBar     = 10  // bulk triage relative to the same change in SQL
	previewBar  = 1   // a preview relative to the same change in SQL
	manyClients = 16
	bulkTriage  = 100_000
)

// triageFigures has the figures of the rounds.
type triageFigures struct {
	one, many     sample // decisions per second
	oneSlow, slow sample // milliseconds
	failed        sample
	bulk, byHand  sample // milliseconds
	preview       sample // milliseconds, like the next two for bulkSize findings
	update, undo  sample
	bulkSize      int
}

// measureTriage triages findings one by one, with one client and with many, and in bulk.
func (b *bench) measureTriage(ctx context.Context) ([]row, error) {
	if err := b.dropPlain(ctx); err != nil {
		return nil, err
	}
	var f triageFigures
	for n := range b.rounds {
		b.progress("triage one by one, round %d of %d", n+1, b.rounds)
		one, err := b.decide(ctx, 1)
		if err != nil {
			return nil, err
		}
		many, err := b.decide(ctx, manyClients)
		if err != nil {
			return nil, err
		}
		f.one, f.oneSlow = append(f.one, one.rate), append(f.oneSlow, one.slowest)
		f.many, f.slow = append(f.many, many.rate), append(f.slow, many.slowest)
		f.failed = append(f.failed, float64(one.failed+many.failed))
	}
	if err := b.bulkRounds(ctx, &f); err != nil {
		return nil, err
	}
	return f.rows(), nil
}

func (f *triageFigures) rows() []row {
	return []row{
		{what: "single triage, 1 client", value: f.one, unit: perSecondOf, note: fmt.Sprintf("each on two refs, with history and audit; slowest %.0f ms", f.oneSlow.median())},
		{what: "single triage, 16 clients", value: f.many, unit: perSecondOf, ratio: f.many.over(f.one), base: "1 client", bar: atLeast(groupBar)},
		{what: "single triage, 16 clients: slowest", value: f.slow, unit: millis, bar: always(slowestBar, "ms"), note: "no concurrent import"},
		{what: "single triage: errors", value: f.failed, unit: plainNumber, bar: always(0, " ")},
		{what: "handwritten UPDATE and INSERT … SELECT", value: f.byHand, unit: millis, note: fmt.Sprintf("%d findings of the same file, one transaction", f.bulkSize)},
		{what: "bulk triage", value: f.bulk, unit: millis, ratio: f.bulk.over(f.byHand), base: "handwritten SQL", bar: atMost(bulkBar), note: "the same number of findings, chosen by id"},
		{what: "bulk update: preview", value: f.preview, unit: millis, ratio: f.preview.over(f.byHand), base: "handwritten SQL", bar: atMost(previewBar), note: "chosen by filter, on all refs; for as many findings"},
		{what: "bulk update", value: f.update, unit: millis, ratio: f.update.over(f.byHand), base: "handwritten SQL", bar: atMost(bulkBar), note: "the previewed findings; they can be undone"},
		{what: "bulk update: undo", value: f.undo, unit: millis, ratio: f.undo.over(f.byHand), base: "handwritten SQL", bar: atMost(bulkBar)},
	}
}

// decisions are the decisions of all clients in a round.
type decisions struct {
	rate, slowest float64
	failed        int64
}

// decide lets clients triage one finding after the other for the duration of a round.
func (b *bench) decide(ctx context.Context, clients int) (decisions, error) {
	const mostPerSecond = 4000
	ids, err := b.undecided(ctx, max(clients, int(b.cpu.Seconds()*mostPerSecond)))
	if err != nil {
		return decisions{}, err
	}
	var (
		next, failed atomic.Int64
		all          sync.WaitGroup
		lock         sync.Mutex
		waited       []time.Duration
	)
	began := time.Now()
	for range clients {
		all.Go(func() {
			c := newClient(b.server.ready.HTTP, b.token, 1)
			defer c.close()
			var own []time.Duration
			for time.Since(began) < b.cpu && ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= len(ids) {
					break
				}
				start := time.Now()
				if n, err := c.triage(ctx, ids[i:i+1], "reviewing"); err != nil || n == 0 {
					b.progress("triage of finding %d: %d changed: %v", ids[i], n, err)
					failed.Add(1)
					continue
				}
				own = append(own, time.Since(start))
			}
			lock.Lock()
			defer lock.Unlock()
			waited = append(waited, own...)
		})
	}
	all.Wait()
	took := time.Since(began)
	if err := ctx.Err(); err != nil {
		return decisions{}, err
	}
	if len(waited) == 0 {
		return decisions{}, errors.New("triage: no finding was changed")
	}
	return decisions{rate: perSecond(len(waited), took), slowest: micros(slices.Max(waited)) / 1000, failed: failed.Load()}, nil
}

// undecided returns at most the given number of untriaged findings on main, from all projects in turns, oldest first:
// people who triage concurrently mostly work in different projects. The same findings on the other ref are triaged with
// them.
func (b *bench) undecided(ctx context.Context, most int) (ids []int64, err error) {
	// Most projects have dependencies and no findings. Without the deployment, no index finds the findings of a
	// project.
	projects, err := b.ids(ctx, "SELECT id FROM projects WHERE deployment_id = (SELECT MIN(id) FROM deployments) AND EXISTS (SELECT 1 FROM findings WHERE findings.deployment_id = projects.deployment_id AND project_id = projects.id) ORDER BY id")
	if err != nil {
		return nil, err
	}
	lists := make([][]int64, len(projects))
	for i, project := range projects {
		lists[i], err = b.ids(ctx, fmt.Sprintf("SELECT id FROM findings WHERE deployment_id = (SELECT MIN(id) FROM deployments) AND issue_type = 'sast' AND status = 'open' AND ref = 'refs/heads/main' AND project_id = %d AND id > %d ORDER BY id LIMIT %d",
			project, b.decided[project], most))
		if err != nil {
			return nil, err
		}
	}
	for before := -1; len(ids) < most && len(ids) > before; {
		before = len(ids)
		for i := 0; i < len(lists) && len(ids) < most; i++ {
			if len(lists[i]) > 0 {
				ids, b.decided[projects[i]] = append(ids, lists[i][0]), lists[i][0]
				lists[i] = lists[i][1:]
			}
		}
	}
	if len(ids) == 0 {
		err = errors.New("no finding is left to decide about: raise --findings")
	}
	return ids, err
}

func (b *bench) ids(ctx context.Context, query string) (ids []int64, err error) {
	rows, err := b.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
