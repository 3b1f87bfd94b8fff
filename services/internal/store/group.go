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
	// groupSize is how many Writes share a transaction at the most.
	groupSize = 64
	// groupPatience is for how long Writes may keep those waiting that have run before them in the same transaction.
	groupPatience = 20 * time.Millisecond
	// guestPatience is the same where it is not their own fault: Writes of several deployments, or of jobs, which others
	// than their deployment wait for.
	guestPatience = groupPatience / 4
)

// group lets the Writes that wait for the one writer of SQLite share a transaction, so that one sync of the disk stores
// them all: each is a savepoint of its own, and none returns before the commit. They run one after the other, each on
// the goroutine of its caller: deployments take turns, and those of one run in order of arrival. One that takes long
// has its transaction for itself.
type group struct {
	db       *sql.DB
	patience time.Duration // groupPatience, but for tests that a slow machine must not disturb
	guest    time.Duration // guestPatience, likewise

	mu      sync.Mutex
	queue   []*turn
	arrived uint64 // the number of the last one that came
	leading bool   // a goroutine works on the queue
	took    map[uintptr]time.Duration
	// served is when each deployment had its last turn, counted in turns.
	served map[int64]uint64
	turns  uint64
}

// party is who a Write is of.
type party struct {
	deployment int64 // 0: no single one
	job        bool
}

type jobKey struct{}

// ForJob marks what a job writes: on SQLite it shares transactions for a shorter time than what callers wait for.
func ForJob(ctx context.Context) context.Context { return context.WithValue(ctx, jobKey{}, true) }

func partyOf(ctx context.Context) (p party) {
	p.deployment, _ = tenant.FromContext(ctx)
	p.job, _ = ctx.Value(jobKey{}).(bool)
	return p
}

// turn is one Write that waits.
type turn struct {
	party
	number uint64
	kind   uintptr        // the code of its function
	begin  chan beginning // one: its turn has come
	ended  chan ending    // one: it has run
	over   chan error     // one: the transaction has ended, and this is why what was to be kept is not stored
}

type beginning struct {
	part *part
	err  error // there is no transaction
}

type ending struct {
	keep bool  // what it wrote is to be stored
	lost error // the whole transaction is gone
	took time.Duration
}

func newGroup(db *sql.DB) *group {
	return &group{db: db, patience: groupPatience, guest: guestPatience, took: map[uintptr]time.Duration{}, served: map[int64]uint64{}}
}

// kindOf tells functions apart by where they are written: how long one took says how long the next will take.
func kindOf(fn any) uintptr { return reflect.ValueOf(fn).Pointer() }

// write waits for a turn, lets run use its part of a transaction, and returns when that is stored: with an error when
// run had one, or when there is no transaction. It leaves the queue when ctx ends.
func (g *group) write(ctx context.Context, kind uintptr, run func(*part) error) error {
	t := g.enter(partyOf(ctx), kind)
	var b beginning
	select {
	case b = <-t.begin:
	case <-ctx.Done():
		if g.leave(t) {
			return fmt.Errorf("begin transaction: %w", ctx.Err())
		}
		b = <-t.begin
	}
	if b.err != nil {
		return fmt.Errorf("begin transaction: %w", b.err)
	}
	return t.run(b.part, run)
}

// run uses the part and waits for the end of the transaction, also when run panics or ends its goroutine: whoever kept
// the transaction finds it closed.
func (t *turn) run(p *part, run func(*part) error) (err error) {
	start := time.Now()
	defer func() {
		t.ended <- ending{keep: p.kept, lost: p.lost, took: time.Since(start)}
		if commit := <-t.over; err == nil && commit != nil {
			err = fmt.Errorf("commit: %w", commit)
		}
	}()
	return run(p)
}

func (g *group) enter(of party, kind uintptr) *turn {
	t := &turn{party: of, kind: kind, begin: make(chan beginning, 1), ended: make(chan ending, 1), over: make(chan error, 1)}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.arrived++
	t.number = g.arrived
	g.queue = append(g.queue, t)
	if !g.leading {
		g.leading = true
		go g.lead()
	}
	return t
}

// leave takes a turn out of the queue; false: it has begun.
func (g *group) leave(t *turn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, t)
	if i < 0 {
		return false
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	return true
}

// lead makes transactions for those who wait until there are none.
func (g *group) lead() {
	for {
		g.mu.Lock()
		if len(g.queue) == 0 {
			g.leading = false
			g.mu.Unlock()
			return
		}
		waiting := g.arrived
		g.mu.Unlock()
		tx, err := g.db.BeginTx(context.Background(), nil) // not that of a caller: it would end with him
		if err != nil {
			g.refuse(waiting, err)
			continue
		}
		g.round(tx)
	}
}

// refuse tells those who have waited for a transaction that there is none.
func (g *group) refuse(last uint64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := g.first(last); i >= 0; i = g.first(last) {
		g.take(i).begin <- beginning{err: err}
	}
}

// round gives turns to those who wait now, and ends their transaction.
func (g *group) round(tx *sql.Tx) {
	g.mu.Lock()
	last := g.arrived
	g.mu.Unlock()
	var took []*turn
	var err error
	start, keep := time.Now(), false
	for len(took) < groupSize && err == nil {
		t, alone := g.next(last, took, time.Since(start))
		if t == nil {
			break
		}
		took = append(took, t)
		t.begin <- beginning{part: &part{tx: tx, alone: alone}}
		end := <-t.ended
		g.learn(t.kind, end.took)
		keep = keep || end.keep
		if err = end.lost; alone {
			break
		}
	}
	if err != nil || !keep {
		_ = tx.Rollback() // nobody was told that anything is stored
	} else {
		err = tx.Commit()
	}
	for _, t := range took {
		t.over <- err
	}
}

// next returns whose turn it is of those that came no later than last, unless it would keep those before it in the
// transaction waiting for too long. Alone: no other will share the transaction.
func (g *group) next(last uint64, before []*turn, elapsed time.Duration) (t *turn, alone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := g.first(last)
	if i < 0 {
		return nil, false
	}
	t = g.queue[i]
	expected, known := g.took[t.kind]
	if !known {
		expected = g.patience
	}
	if len(before) > 0 && elapsed+expected >= g.patienceOf(before, t) {
		return nil, false
	}
	g.take(i)
	return t, len(before) == 0 && (expected >= g.patience || g.first(last) < 0)
}

// patienceOf is how long the transaction of some turns may take when one more is among them.
func (g *group) patienceOf(before []*turn, t *turn) time.Duration {
	for _, other := range before {
		if other.job || t.job || other.deployment != t.deployment {
			return g.guest
		}
	}
	return g.patience
}

// first is the place in the queue of the deployment whose last turn is longest ago, of those that came no later than
// last; -1 without any.
func (g *group) first(last uint64) int {
	best := -1
	for i, t := range g.queue {
		if t.number > last {
			break
		}
		if best < 0 || g.served[t.deployment] < g.served[g.queue[best].deployment] {
			best = i
		}
	}
	return best
}

// take takes a turn out of the queue.
func (g *group) take(i int) *turn {
	t := g.queue[i]
	g.queue = slices.Delete(g.queue, i, i+1)
	g.turns++
	g.served[t.deployment] = g.turns
	return t
}

// learn remembers the longest time of a function, and slowly forgets it: one that was long once may be again.
func (g *group) learn(kind uintptr, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.took[kind] = max(took, g.took[kind]*7/8)
}
