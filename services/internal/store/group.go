package store

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/palisade/palisade/ent/tenant"
)

const (
	// groupSize is the maximum number of Writes in a group.
	groupSize = 64
	// maxGroupDelay is how long a finished Write may wait for later Writes of its group before the commit.
	maxGroupDelay = 20 * time.Millisecond
	// maxMixedDelay is maxGroupDelay for a group with several deployments or with jobs: there a deployment waits for
	// the work of others.
	maxMixedDelay = maxGroupDelay / 4
)

// group implements group commit: Writes that wait for the only SQLite writer share a transaction, so that one fsync
// stores them all. Each Write has its own savepoint, and none returns before the commit. Writes run one after the
// other, each on its caller's goroutine. Deployments take turns; Writes of one deployment run in order of arrival.
// A Write that is expected to take long has its own transaction.
type group struct {
	db       *sql.DB
	maxDelay time.Duration // maxGroupDelay; tests raise it
	maxMixed time.Duration // maxMixedDelay; tests change it

	mu        sync.Mutex
	queue     []*pendingWrite
	arrived   uint64 // the number of the newest Write
	running   bool   // whether the goroutine of run is active
	durations map[uintptr]time.Duration
	// lastServed is the value of turns at each deployment's last Write.
	lastServed map[int64]uint64
	turns      uint64
}

// origin is where a Write comes from.
type origin struct {
	deployment int64 // 0: none, or several
	job        bool
}

type jobKey struct{}

// ForJob marks the Writes of a job. On SQLite they share a transaction for a shorter time than the Writes of
// requests.
func ForJob(ctx context.Context) context.Context { return context.WithValue(ctx, jobKey{}, true) }

func originOf(ctx context.Context) (o origin) {
	o.deployment, _ = tenant.FromContext(ctx)
	o.job, _ = ctx.Value(jobKey{}).(bool)
	return o
}

// pendingWrite is a Write in the queue or in a group.
type pendingWrite struct {
	origin
	number    uint64
	kind      uintptr      // the address of its function
	granted   chan grant   // capacity 1: the Write may run
	finished  chan outcome // capacity 1: the Write has run
	committed chan error   // capacity 1: the transaction has ended, with this error
}

type grant struct {
	savepoint *savepoint
	err       error // the transaction could not begin
}

type outcome struct {
	keep bool  // the Write must be stored
	lost error // why the whole transaction was rolled back
	took time.Duration
}

func newGroup(db *sql.DB) *group {
	return &group{db: db, maxDelay: maxGroupDelay, maxMixed: maxMixedDelay, durations: map[uintptr]time.Duration{}, lastServed: map[int64]uint64{}}
}

// kindOf identifies a function by its address. The duration of its last Write predicts the next one.
func kindOf(fn any) uintptr { return reflect.ValueOf(fn).Pointer() }

// write queues a Write, runs it in a savepoint and returns after the commit. It returns the error of run, or of the
// transaction. When ctx ends before the Write has begun, it leaves the queue.
func (g *group) write(ctx context.Context, kind uintptr, run func(*savepoint) error) error {
	w := g.enqueue(originOf(ctx), kind)
	var b grant
	select {
	case b = <-w.granted:
	case <-ctx.Done():
		if g.remove(w) {
			return fmt.Errorf("begin transaction: %w", ctx.Err())
		}
		b = <-w.granted
	}
	if b.err != nil {
		return fmt.Errorf("begin transaction: %w", b.err)
	}
	return w.run(b.savepoint, run)
}

// run runs the Write and waits for the end of the transaction, even when run panics or exits its goroutine. A
// transaction that fn has kept is closed then.
func (w *pendingWrite) run(p *savepoint, run func(*savepoint) error) (err error) {
	start := time.Now()
	defer func() {
		w.finished <- outcome{keep: p.kept, lost: p.lost, took: time.Since(start)}
		if commit := <-w.committed; err == nil && commit != nil {
			err = fmt.Errorf("commit: %w", commit)
		}
	}()
	return run(p)
}

func (g *group) enqueue(from origin, kind uintptr) *pendingWrite {
	w := &pendingWrite{origin: from, kind: kind, granted: make(chan grant, 1), finished: make(chan outcome, 1), committed: make(chan error, 1)}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.arrived++
	w.number = g.arrived
	g.queue = append(g.queue, w)
	if !g.running {
		g.running = true
		go g.run()
	}
	return w
}

// remove takes a Write out of the queue. It returns false when the Write has begun.
func (g *group) remove(w *pendingWrite) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, w)
	if i < 0 {
		return false
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	return true
}

// run commits groups until the queue is empty.
func (g *group) run() {
	for {
		g.mu.Lock()
		if len(g.queue) == 0 {
			g.running = false
			g.mu.Unlock()
			return
		}
		waiting := g.arrived
		g.mu.Unlock()
		tx, err := g.db.BeginTx(context.Background(), nil) // not a caller's context: the transaction outlives it
		if err != nil {
			g.fail(waiting, err)
			continue
		}
		g.commitGroup(tx)
	}
}

// fail returns an error to the Writes that have waited for the transaction.
func (g *group) fail(last uint64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := g.first(last); i >= 0; i = g.first(last) {
		g.take(i).granted <- grant{err: err}
	}
}

// commitGroup runs the Writes that are queued now in one transaction, and commits it.
func (g *group) commitGroup(tx *sql.Tx) {
	g.mu.Lock()
	last := g.arrived
	g.mu.Unlock()
	var took []*pendingWrite
	var err error
	start, keep := time.Now(), false
	for len(took) < groupSize && err == nil {
		w, alone := g.next(last, took, time.Since(start))
		if w == nil {
			break
		}
		took = append(took, w)
		w.granted <- grant{savepoint: &savepoint{tx: tx, alone: alone}}
		end := <-w.finished
		g.learn(w.kind, end.took)
		keep = keep || end.keep
		if err = end.lost; alone {
			break
		}
	}
	if err != nil || !keep {
		_ = tx.Rollback() // no Write has returned success
	} else {
		err = tx.Commit()
	}
	for _, w := range took {
		w.committed <- err
	}
}

// next removes and returns the next Write up to number last. It returns nil when the Write would delay the commit
// of the group for too long. alone: the Write gets the transaction for itself.
func (g *group) next(last uint64, before []*pendingWrite, elapsed time.Duration) (w *pendingWrite, alone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := g.first(last)
	if i < 0 {
		return nil, false
	}
	w = g.queue[i]
	expected, known := g.durations[w.kind]
	if !known {
		expected = g.maxDelay
	}
	if len(before) > 0 && elapsed+expected >= g.delayFor(before, w) {
		return nil, false
	}
	g.take(i)
	return w, len(before) == 0 && (expected >= g.maxDelay || g.first(last) < 0)
}

// delayFor returns the maximum delay of a group after w has joined it.
func (g *group) delayFor(before []*pendingWrite, w *pendingWrite) time.Duration {
	for _, other := range before {
		if other.job || w.job || other.deployment != w.deployment {
			return g.maxMixed
		}
	}
	return g.maxDelay
}

// first returns the queue index of the next Write up to number last: the oldest one of the deployment that was
// served least recently. It returns -1 when there is none.
func (g *group) first(last uint64) int {
	best := -1
	for i, w := range g.queue {
		if w.number > last {
			break
		}
		if best < 0 || g.lastServed[w.deployment] < g.lastServed[g.queue[best].deployment] {
			best = i
		}
	}
	return best
}

// take removes a Write from the queue and counts it for its deployment.
func (g *group) take(i int) *pendingWrite {
	w := g.queue[i]
	g.queue = slices.Delete(g.queue, i, i+1)
	g.turns++
	g.lastServed[w.deployment] = g.turns
	return w
}

// learn records the duration of a Write. The longest duration decays slowly, because a function that was slow once
// may be slow again.
func (g *group) learn(kind uintptr, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.durations[kind] = max(took, g.durations[kind]*7/8)
}
