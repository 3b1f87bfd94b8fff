package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// writers write events in parallel. On PostgreSQL some transactions commit after transactions that began later.
type writers struct {
	st *store.Store

	mu      sync.Mutex
	changed *sync.Cond
	commits int
	active  int // writers that have not finished
	late    int // transactions that wait for others
	ids     []int64
}

const parallelWriters, writesOfEach = 5, 30

func (w *writers) run(t *testing.T) (ids []int64) {
	w.changed, w.active = sync.NewCond(&w.mu), parallelWriters
	var all sync.WaitGroup
	for n := range parallelWriters {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			for range writesOfEach {
				if err := w.write(t.Context(), r); err != nil {
					t.Error(err)
					break
				}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.active--
			w.changed.Broadcast()
		})
	}
	all.Wait()
	return w.ids
}

// write commits or rolls back a transaction with a few events.
func (w *writers) write(ctx context.Context, r *rand.Rand) error {
	findings := make([]int64, 1+r.IntN(4))
	for i := range findings {
		findings[i] = r.Int64N(1000) + 1
	}
	var ids []int64
	err := w.st.Write(tenant.NewContext(ctx, deployment), func(ctx context.Context, tx *ent.Tx) (err error) {
		if ids, err = insert(ctx, tx, findings...); err != nil {
			return err
		}
		if w.st.Postgres() && r.IntN(3) == 0 {
			w.beLate(1 + r.IntN(6))
		}
		if r.IntN(10) == 0 {
			return errEnough
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits++
	w.changed.Broadcast()
	if errors.Is(err, errEnough) {
		return nil
	}
	w.ids = append(w.ids, ids...)
	return err
}

// beLate waits until this many other transactions have ended, while two writers go on.
func (w *writers) beLate(others int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late++
	for until := w.commits + others; w.commits < until && w.active-w.late >= 2; {
		w.changed.Wait()
	}
	w.late--
}

// Every watcher gets every committed change, however late it commits: one that stays, one with small messages, one that
// breaks off all the time and continues on another node, and one that starts with the oldest change.
func TestNoGapsUnderParallelWriters(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		ctx, cancel := context.WithCancel(caller(t.Context()))
		defer cancel()
		nodes := []*Feed{newFeed(st), newFeed(st)}
		old := commit(t, st, 1, 2, 3)

		stays, small, restless := newConsumer(), newConsumer(), newConsumer()
		watch(t, ctx, nodes[0], stays, &findingsv1.WatchFindingsRequest{})
		watch(t, ctx, nodes[1], small, &findingsv1.WatchFindingsRequest{Limit: 2})
		var reconnects atomic.Int64
		messages := 0
		restless.before = func(r *findingsv1.WatchFindingsResponse) error {
			if messages++; messages%3 == 0 && len(r.GetChanges()) > 0 { // this message is lost
				return errEnough
			}
			return nil
		}
		ended := watch(t, ctx, nodes[0], restless, &findingsv1.WatchFindingsRequest{Wait: 0})
		go func() {
			err := <-ended
			for i := 1; ctx.Err() == nil; i++ {
				if !errors.Is(err, errEnough) {
					t.Errorf("reconnect: %v", err)
					return
				}
				reconnects.Add(1)
				err = nodes[i%2].Watch(ctx, &findingsv1.WatchFindingsRequest{ResumeToken: restless.position(), Limit: 7}, restless.send)
			}
		}()

		ids := (&writers{st: st}).run(t)
		for name, c := range map[string]*consumer{"stays": stays, "small": small, "restless": restless} {
			c.await(t, ids...)
			if len(c.missing(old)) != len(old) {
				t.Errorf("%s got changes from before it began", name)
			}
		}
		if got := reconnects.Load(); got < 3 {
			t.Errorf("the restless watcher connected only %d times", got)
		}
		if again := duplicates(stays); len(again) > 0 {
			t.Errorf("a watcher that stayed got these changes twice: %v", again)
		}
		all := newConsumer()
		watch(t, ctx, nodes[1], all, &findingsv1.WatchFindingsRequest{FromOldest: true})
		all.await(t, append(ids, old...)...)
		if again := duplicates(all); len(again) > 0 || len(all.seen) != len(ids)+len(old) {
			t.Errorf("from the oldest: %d changes, want %d; twice: %v", len(all.seen), len(ids)+len(old), again)
		}
	})
}

func duplicates(c *consumer) (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, n := range c.seen {
		if n > 1 {
			list = append(list, fmt.Sprintf("%d (%d times)", id, n))
		}
	}
	slices.Sort(list)
	return list
}

// A transaction that stays open delays its own changes and no others. A token from the meantime still gets them.
func TestOpenTransactionDelaysOnlyItself(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		if !st.Postgres() {
			return // one writer: nothing can be written meanwhile
		}
		ctx, cancel := context.WithCancel(caller(t.Context()))
		defer cancel()
		c := newConsumer()
		watch(t, ctx, newFeed(st), c, &findingsv1.WatchFindingsRequest{})
		written, release, done := make(chan []int64), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- st.Write(tenant.NewContext(t.Context(), deployment), func(ctx context.Context, tx *ent.Tx) error {
				ids, err := insert(ctx, tx, 1)
				written <- ids
				<-release
				return err
			})
		}()
		late := <-written
		c.await(t, commit(t, st, 2)...)
		c.await(t, commit(t, st, 3)...)
		between := newConsumer()
		watch(t, ctx, newFeed(st), between, &findingsv1.WatchFindingsRequest{ResumeToken: c.position()})
		if len(c.missing(late)) == 0 {
			t.Fatal("a change arrived before its transaction was committed")
		}
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		c.await(t, late...)
		between.await(t, late...)
		if len(between.seen) != 1 {
			t.Errorf("the token of the meantime got %v", between.seen)
		}
	})
}

// Events of another cluster, from a restored dump, have transaction numbers that this cluster has not reached. They are
// read as old ones and never again.
func TestEventsOfAnotherCluster(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		if !st.Postgres() {
			return // no transaction numbers
		}
		restored := commit(t, st, 1, 2)
		if err := st.ExecOutside(t.Context(), "UPDATE finding_events SET tx = tx + 1000000"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(caller(t.Context()))
		defer cancel()
		f := newFeed(st)
		c := newConsumer()
		watch(t, ctx, f, c, &findingsv1.WatchFindingsRequest{FromOldest: true})
		c.await(t, restored...)
		c.await(t, commit(t, st, 3)...)
		resumed := newConsumer()
		watch(t, ctx, f, resumed, &findingsv1.WatchFindingsRequest{ResumeToken: c.position()})
		resumed.await(t, commit(t, st, 4)...)
		if len(resumed.seen) != 1 || len(duplicates(c)) > 0 {
			t.Errorf("after the token: %v; twice: %v", resumed.seen, duplicates(c))
		}
	})
}
