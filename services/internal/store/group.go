package store

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"
)

const (
	// groupSize is how many Writes share a transaction at the most.
	groupSize = 64
	// groupPatience is for how long Writes may keep those waiting that have run before them in the same transaction.
	groupPatience = 20 * time.Millisecond
)

// group lets the Writes that wait for the one writer of SQLite share a transaction, so that one sync of the disk stores
// them all: each is a savepoint of its own, and none returns before the commit. They run one after the other, in order of
// arrival, each on the goroutine of its caller. One that takes long has its transaction for itself.
type group struct {
	db       *sql.DB
	patience time.Duration // groupPatience, but for tests that a slow machine must not disturb

	mu      sync.Mutex
	queue   []*turn
	arrived uint64 // the number of the last one that came
	leading bool   // a goroutine works on the queue
	took    map[uintptr]time.Duration
}

// turn is one Write that waits.
type turn struct {
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
	return &group{db: db, patience: groupPatience, took: map[uintptr]time.Duration{}}
}

// kindOf tells functions apart by where they are written: how long one took says how long the next will take.
func kindOf(fn any) uintptr { return reflect.ValueOf(fn).Pointer() }

// write waits for a turn, lets run use its part of a transaction, and returns when that is stored: with an error when run
// had one, or when there is no transaction. It leaves the queue when ctx ends.
func (g *group) write(ctx context.Context, kind uintptr, run func(*part) error) error {
	t := g.enter(kind)
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

// run uses the part and waits for the end of the transaction, also when run panics or ends its goroutine: whoever kept the
// transaction finds it closed.
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

func (g *group) enter(kind uintptr) *turn {
	t := &turn{kind: kind, begin: make(chan beginning, 1), ended: make(chan ending, 1), over: make(chan error, 1)}
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
	for len(g.queue) > 0 && g.queue[0].number <= last {
		g.pop().begin <- beginning{err: err}
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
		t, alone := g.next(last, len(took), time.Since(start))
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

// next returns the first in the queue that came no later than last, unless it would keep those before it in the
// transaction waiting for too long. Alone: no other will share the transaction.
func (g *group) next(last uint64, before int, elapsed time.Duration) (t *turn, alone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 || g.queue[0].number > last {
		return nil, false
	}
	expected, known := g.took[g.queue[0].kind]
	if !known {
		expected = g.patience
	}
	if before > 0 && elapsed+expected >= g.patience {
		return nil, false
	}
	t = g.pop()
	return t, before == 0 && (expected >= g.patience || len(g.queue) == 0 || g.queue[0].number > last)
}

func (g *group) pop() *turn {
	t := g.queue[0]
	g.queue[0] = nil
	g.queue = g.queue[1:]
	return t
}

// learn remembers the longest time of a function, and slowly forgets it: one that was long once may be again.
func (g *group) learn(kind uintptr, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.took[kind] = max(took, g.took[kind]*7/8)
}
