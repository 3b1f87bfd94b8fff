package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
)

// The load of the change feed: events a second in transactions of feedBatch, for feedSeconds, to feedWatchers.
const (
	feedRate, feedBatch = 1000, 20
	feedSeconds         = 8
	feedWatchers        = 20
	feedNodes           = 3 // on PostgreSQL
	// feedLimit is the limit from the commit to the delivery, in milliseconds.
	feedLimit = 1000
	// feedPatience is how long the last change may take.
	feedPatience = 20 * time.Second
)

// feedFigures are the times from the commit of a change to its delivery, in milliseconds, and the CPU time of the
// servers.
type feedFigures struct{ p50, p95, p99, slowest, cpu, idle, unwatched sample }

// measureFeed writes changes in SQL and watches them over gRPC, on one node and on PostgreSQL on three.
func (b *bench) measureFeed(ctx context.Context) (rows []row, err error) {
	ids, err := b.ids(ctx, fmt.Sprintf("SELECT id FROM findings ORDER BY id DESC LIMIT %d", feedRate))
	if err != nil {
		return nil, err
	}
	nodes := []*child{b.server}
	defer func() {
		for _, node := range nodes[1:] {
			err = errors.Join(err, node.stop())
		}
	}()
	counts := []int{1}
	if b.db.postgres() {
		counts = append(counts, feedNodes)
	}
	for _, count := range counts {
		for len(nodes) < count {
			node, err := start(ctx, rolePalisade, b.settings, b.stderr)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, node)
		}
		f := &feedFigures{}
		for n := range min(b.rounds, deepRounds) {
			b.progress("feed on %d nodes, round %d", count, n+1)
			if err := b.feedRound(ctx, nodes, ids, f); err != nil {
				return nil, fmt.Errorf("on %d nodes: %w", count, err)
			}
		}
		rows = append(rows, f.rows(count)...)
	}
	return rows, nil
}

func (f *feedFigures) rows(nodes int) []row {
	on := "one node"
	if nodes > 1 {
		on = fmt.Sprintf("%d nodes", nodes)
	}
	load := fmt.Sprintf("%d events a second to %d watchers", feedRate, feedWatchers)
	return []row{
		{what: "commit to delivery, " + on + ": p50", value: f.p50, unit: millis, note: load},
		{what: "commit to delivery, " + on + ": p95", value: f.p95, unit: millis, bar: within(feedLimit, "ms")},
		{what: "commit to delivery, " + on + ": p99", value: f.p99, unit: millis},
		{what: "commit to delivery, " + on + ": slowest", value: f.slowest, unit: millis},
		{what: "servers under the load, " + on, value: f.cpu, unit: cpuMicrosFine, note: "for each event and watcher"},
		{what: "servers without events, " + on, value: f.idle, unit: millis, note: fmt.Sprintf("CPU a second with %d watchers", feedWatchers)},
		{what: "servers without watchers, " + on, value: f.unwatched, unit: millis, note: "CPU a second"},
	}
}

// feedRound measures idle watchers, then the load. Each watcher must get every event.
func (b *bench) feedRound(ctx context.Context, nodes []*child, findings []int64, f *feedFigures) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const still = 3 * time.Second
	wait := func() error {
		time.Sleep(still)
		return nil
	}
	unwatched, err := cpuDuring(nodes, wait)
	if err != nil {
		return err
	}
	watchers := make([]*feedWatcher, feedWatchers)
	for i := range watchers {
		w, err := b.watchFeed(ctx, nodes[i%len(nodes)])
		if err != nil {
			return err
		}
		defer w.close()
		watchers[i] = w
	}
	idle, err := cpuDuring(nodes, wait)
	if err != nil {
		return err
	}
	committed := map[int64]time.Time{}
	busy, err := cpuDuring(nodes, func() error { return b.feedLoad(ctx, findings, committed) })
	if err != nil {
		return err
	}
	var waited []time.Duration
	for _, w := range watchers {
		took, err := w.waits(committed)
		if err != nil {
			return err
		}
		waited = append(waited, took...)
	}
	slices.Sort(waited)
	f.p50, f.p95, f.p99 = append(f.p50, percentile(waited, 50)), append(f.p95, percentile(waited, 95)), append(f.p99, percentile(waited, 99))
	f.slowest = append(f.slowest, micros(waited[len(waited)-1])/1000)
	f.cpu = append(f.cpu, micros(busy)/float64(len(waited)))
	f.unwatched = append(f.unwatched, micros(unwatched)/1000/still.Seconds())
	f.idle = append(f.idle, micros(idle)/1000/still.Seconds())
	return nil
}

func cpuDuring(nodes []*child, do func() error) (sum time.Duration, err error) {
	for _, node := range nodes {
		cpu, failed := node.cpu()
		sum -= cpu
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, do())
	for _, node := range nodes {
		cpu, failed := node.cpu()
		sum += cpu
		err = errors.Join(err, failed)
	}
	return sum, err
}

// feedLoad commits transactions at a fixed rate and notes when each event was committed.
func (b *bench) feedLoad(ctx context.Context, findings []int64, committed map[int64]time.Time) error {
	next := time.Now()
	for n := range feedRate * feedSeconds / feedBatch {
		at := n * feedBatch % (len(findings) - feedBatch)
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(findings[at:at+feedBatch]), " ", ","), "[]")
		ids, err := b.ids(ctx, fmt.Sprintf(`INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, actor_name, at)
			SELECT deployment_id, id, 'noted', status, status, '', 'written by the benchmark', 'user', 1, '', %d FROM findings WHERE id IN (%s) RETURNING id`, time.Now().UnixMicro(), list))
		if err != nil {
			return err
		}
		now := time.Now()
		for _, id := range ids {
			committed[id] = now
		}
		next = next.Add(time.Second * feedBatch / feedRate)
		time.Sleep(time.Until(next))
	}
	return nil
}

// feedWatcher notes when changes arrive.
type feedWatcher struct {
	close func()

	mu      sync.Mutex
	arrived map[int64]time.Time
	failed  error
}

// watchFeed starts a watcher and returns after its first message.
func (b *bench) watchFeed(ctx context.Context, node *child) (*feedWatcher, error) {
	conn, err := dial(node.ready.GRPC)
	if err != nil {
		return nil, err
	}
	w := &feedWatcher{close: func() { _ = conn.Close() }, arrived: map[int64]time.Time{}}
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+b.token)
	stream, err := findingsv1.NewFindingChangesServiceClient(conn).WatchFindings(ctx, &findingsv1.WatchFindingsRequest{DeploymentId: 1})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go func() {
		for {
			message, err := stream.Recv()
			now := time.Now()
			w.mu.Lock()
			for _, change := range message.GetChanges() {
				w.arrived[change.GetId()] = now
			}
			w.failed = err
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return w, nil
}

// waits returns the time from the commit to the arrival of each event. It waits for the last ones.
func (w *feedWatcher) waits(committed map[int64]time.Time) ([]time.Duration, error) {
	for end := time.Now().Add(feedPatience); ; time.Sleep(10 * time.Millisecond) {
		took, failed := w.taken(committed)
		switch {
		case failed != nil:
			return nil, failed
		case len(took) == len(committed):
			return took, nil
		case time.Now().After(end):
			return nil, fmt.Errorf("a watcher got %d of %d events", len(took), len(committed))
		}
	}
}

func (w *feedWatcher) taken(committed map[int64]time.Time) (took []time.Duration, failed error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, at := range committed {
		if arrived, ok := w.arrived[id]; ok {
			took = append(took, max(0, arrived.Sub(at)))
		}
	}
	return took, w.failed
}
