package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
)

var errBroken = errors.New("broken")

// The ways in which a Write of the tests ends.
const (
	stores = iota
	fails
	panics
	exits           // ends its goroutine
	failsAtTheEnd   // a BeforeCommit function fails
	violatesKey     // a statement fails, and so does the Write
	ignoresError    // a statement fails, and the Write continues
	cancelledBefore // its context was cancelled before
	outcomes
)

// attempt is one Write of a test.
type attempt struct {
	name    string
	outcome int
	ends    []bool // the arguments of OnEnd's calls
	err     error
	broke   bool // it panicked or ended its goroutine
}

func insert(ctx context.Context, tx *ent.Tx, name string) error {
	return tx.Setting.Create().SetName(name).SetValue([]byte("x")).Exec(ctx)
}

// run runs the Write on its own goroutine, which may end.
func (a *attempt) run(ctx context.Context, st *Store) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if a.outcome == cancelledBefore {
		cancel()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		a.broke = true
		a.err = st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error { return a.change(ctx, tx) })
		a.broke = false
	}()
	<-done
}

func (a *attempt) change(ctx context.Context, tx *ent.Tx) error {
	current, _ := CurrentTransaction(ctx)
	current.OnEnd(func(committed bool) { a.ends = append(a.ends, committed) })
	if err := insert(ctx, tx, a.name); err != nil {
		return err
	}
	switch a.outcome {
	case fails:
		return errBroken
	case panics:
		panic(errBroken)
	case exits:
		runtime.Goexit()
	case failsAtTheEnd:
		current.BeforeCommit(func(context.Context, *ent.Tx) error { return errBroken })
	case violatesKey:
		return insert(ctx, tx, a.name)
	case ignoresError:
		if _, err := current.tx.ExecContext(ctx, "INSERT INTO nowhere VALUES (1)"); err == nil {
			return errors.New("a statement on a missing table succeeds")
		}
	}
	return nil
}

// check compares the result of the Write with the stored rows.
func (a *attempt) check(t interface{ Errorf(string, ...any) }, stored bool, postgres bool) {
	// PostgreSQL aborts the transaction after an error
	want := a.outcome == stores || a.outcome == ignoresError && !postgres
	if stored != want || (a.err == nil && !a.broke) != want {
		t.Errorf("%s (outcome %d): stored %v, want %v; error %v, broke %v", a.name, a.outcome, stored, want, a.err, a.broke)
	}
	if broke := a.outcome == panics || a.outcome == exits; a.broke != broke {
		t.Errorf("%s (outcome %d): broke %v", a.name, a.outcome, a.broke)
	}
	if ran := a.outcome != cancelledBefore; ran && !slices.Equal(a.ends, []bool{want}) || !ran && (a.ends != nil || !errors.Is(a.err, context.Canceled)) {
		t.Errorf("%s (outcome %d): OnEnd got %v, error %v", a.name, a.outcome, a.ends, a.err)
	}
}

// TestWritesTogether: with concurrent Writes, each is stored if and only if it returned nil.
func TestWritesTogether(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, o Options) {
		st := openMigrated(t, o)
		ctx, round := tenant.System(t.Context()), 0
		rapid.Check(t, func(r *rapid.T) {
			round++
			attempts := make([]*attempt, rapid.IntRange(1, 40).Draw(r, "writes"))
			var all sync.WaitGroup
			for i := range attempts {
				a := &attempt{name: fmt.Sprintf("%d-%d", round, i), outcome: rapid.IntRange(0, outcomes-1).Draw(r, "outcome")}
				attempts[i] = a
				all.Go(func() { a.run(ctx, st) })
			}
			all.Wait()
			rows := st.Reader.Setting.Query().Where(setting.NameHasPrefix(strconv.Itoa(round) + "-")).Select(setting.FieldName).StringsX(ctx)
			for _, a := range attempts {
				a.check(r, slices.Contains(rows, a.name), st.Postgres())
			}
		})
	})
}

// holdWriter starts a Write that holds the writer until release is called.
func holdWriter(ctx context.Context, t *testing.T, st *Store, all *sync.WaitGroup) (release func()) {
	started, end := make(chan struct{}), make(chan struct{})
	all.Go(func() {
		if err := st.Write(ctx, func(context.Context, *ent.Tx) error {
			close(started)
			<-end
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-started
	return func() { close(end) }
}

// waitForQueue blocks until n Writes are queued.
func waitForQueue(st *Store, n int) {
	for waiting := -1; waiting < n; runtime.Gosched() {
		st.group.mu.Lock()
		waiting = len(st.group.queue)
		st.group.mu.Unlock()
	}
}

// sqliteStore opens a store that groups Writes even on a slow machine.
func sqliteStore(t *testing.T) (context.Context, *Store) {
	t.Helper()
	st := openMigrated(t, Options{DataDir: t.TempDir()})
	st.group.maxDelay, st.group.maxMixed = time.Minute, time.Minute
	return tenant.System(t.Context()), st
}

// sharer is a Write that records its transaction.
type sharer struct {
	name string
	st   *Store
	in   map[string]any
	ran  *[]string
	more func() // called when it runs
}

func (s sharer) note(ctx context.Context, tx *ent.Tx) error {
	own, _ := s.st.Tx(ctx)
	s.in[s.name] = own
	*s.ran = append(*s.ran, s.name)
	if s.more != nil {
		s.more()
	}
	return insert(tenant.System(ctx), tx, s.name)
}

func (s sharer) short(ctx context.Context, tx *ent.Tx) error   { return s.note(ctx, tx) }
func (s sharer) long(ctx context.Context, tx *ent.Tx) error    { return s.note(ctx, tx) }
func (s sharer) unknown(ctx context.Context, tx *ent.Tx) error { return s.note(ctx, tx) }

// TestWaitingWritesShareTransaction: queued Writes share a transaction, in order of arrival. A Write that arrives
// while the group runs does not join it; neither does a slow function, nor one that has never run.
func TestWaitingWritesShareTransaction(t *testing.T) {
	t.Parallel()
	ctx, st := sqliteStore(t)
	var ran []string
	in := map[string]any{}
	named := func(name string) sharer { return sharer{name: name, st: st, in: in, ran: &ran} }
	st.group.durations[kindOf(named("").short)] = time.Nanosecond
	st.group.durations[kindOf(named("").long)] = time.Minute
	var all sync.WaitGroup
	write := func(fn func(context.Context, *ent.Tx) error) {
		all.Go(func() {
			if err := st.Write(ctx, fn); err != nil {
				t.Error(err)
			}
		})
	}
	lasting := named("e")
	lasting.more = func() {
		write(named("late").short)
		waitForQueue(st, 1)
	}
	release := holdWriter(ctx, t, st, &all)
	for i, fn := range []func(context.Context, *ent.Tx) error{
		named("a").short, named("unknown").unknown, named("b").short, named("c").short, named("long").long, named("d").short, lasting.short,
	} {
		write(fn)
		waitForQueue(st, i+1)
	}
	release()
	all.Wait()
	if want := []string{"a", "unknown", "b", "c", "long", "d", "e", "late"}; !slices.Equal(ran, want) {
		t.Errorf("they ran in the order %v, want %v", ran, want)
	}
	for _, c := range []struct {
		running, other string
		together       bool
	}{
		{"a", "unknown", false}, {"unknown", "b", false}, {"b", "c", true}, {"c", "long", false}, {"long", "d", false}, {"d", "e", true}, {"e", "late", false},
	} {
		if (in[c.running] == in[c.other]) != c.together {
			t.Errorf("%s and %s share a transaction: %v, want %v", c.running, c.other, !c.together, c.together)
		}
	}
}

// TestDeploymentsTakeTurns: the single Write of a deployment does not wait for many Writes of another one. A
// mixed group has a shorter delay, and so has a group with a job.
func TestDeploymentsTakeTurns(t *testing.T) {
	t.Parallel()
	ctx, st := sqliteStore(t)
	st.group.maxMixed = time.Nanosecond // no mixed groups
	var ran []string
	in := map[string]any{}
	named := func(name string) sharer { return sharer{name: name, st: st, in: in, ran: &ran} }
	st.group.durations[kindOf(named("").short)] = time.Nanosecond
	busy, quiet := tenant.NewContext(ctx, 1), tenant.NewContext(ctx, 2)
	var all sync.WaitGroup
	release := holdWriter(busy, t, st, &all)
	for i, w := range []struct {
		ctx  context.Context
		name string
	}{{busy, "a"}, {busy, "b"}, {busy, "c"}, {quiet, "own"}, {ForJob(busy), "job"}, {busy, "d"}} {
		all.Go(func() {
			if err := st.Write(w.ctx, named(w.name).short); err != nil {
				t.Error(err)
			}
		})
		waitForQueue(st, i+1)
	}
	release()
	all.Wait()
	if want := []string{"own", "a", "b", "c", "job", "d"}; !slices.Equal(ran, want) {
		t.Errorf("they ran in the order %v, want %v", ran, want)
	}
	for _, c := range []struct {
		running, other string
		together       bool
	}{{"own", "a", false}, {"a", "b", true}, {"b", "c", true}, {"c", "job", false}, {"job", "d", false}} {
		if (in[c.running] == in[c.other]) != c.together {
			t.Errorf("%s and %s share a transaction: %v, want %v", c.running, c.other, !c.together, c.together)
		}
	}
}

// TestCancelledWriteLeavesQueue: a Write whose context is cancelled leaves the queue at once and does not affect
// the others.
func TestCancelledWriteLeavesQueue(t *testing.T) {
	t.Parallel()
	ctx, st := sqliteStore(t)
	var all sync.WaitGroup
	release := holdWriter(ctx, t, st, &all)
	gone, cancel := context.WithCancel(ctx)
	left := make(chan error, 1)
	go func() {
		left <- st.Write(gone, func(ctx context.Context, tx *ent.Tx) error { return insert(ctx, tx, "gone") })
	}()
	waitForQueue(st, 1)
	all.Go(func() {
		if err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error { return insert(ctx, tx, "stays") }); err != nil {
			t.Error(err)
		}
	})
	waitForQueue(st, 2)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) { // while the writer is still held
		t.Errorf("the cancelled Write got %v", err)
	}
	release()
	all.Wait()
	if rows := st.Reader.Setting.Query().Select(setting.FieldName).StringsX(ctx); !slices.Equal(rows, []string{"stays"}) {
		t.Errorf("stored %v", rows)
	}
}

// TestContextEndsInsideWrite: a cancelled context fails its own Write at the next statement, and no other Write of
// the group.
func TestContextEndsInsideWrite(t *testing.T) {
	t.Parallel()
	ctx, st := sqliteStore(t)
	var all sync.WaitGroup
	release := holdWriter(ctx, t, st, &all)
	one := func(ctx context.Context, tx *ent.Tx) error { return insert(ctx, tx, "one") }
	ending, cancel := context.WithCancel(ctx)
	other := func(ctx context.Context, tx *ent.Tx) error {
		if err := insert(ctx, tx, "first"); err != nil {
			return err
		}
		cancel()
		err := insert(ctx, tx, "second")
		own, _ := st.Tx(ctx)
		if _, late := own.ExecContext(context.Background(), "INSERT INTO settings (name, value) VALUES ('third', 'x')"); late != nil {
			t.Errorf("the transaction is gone: %v", late)
		}
		return err
	}
	st.group.durations[kindOf(one)], st.group.durations[kindOf(other)] = time.Nanosecond, time.Nanosecond
	all.Go(func() {
		if err := st.Write(ctx, one); err != nil {
			t.Error(err)
		}
	})
	waitForQueue(st, 1)
	all.Go(func() {
		if err := st.Write(ending, other); !errors.Is(err, context.Canceled) {
			t.Errorf("the Write whose context ended got %v", err)
		}
	})
	waitForQueue(st, 2)
	release()
	all.Wait()
	if rows := st.Reader.Setting.Query().Select(setting.FieldName).StringsX(ctx); !slices.Equal(rows, []string{"one"}) {
		t.Errorf("stored %v", rows)
	}
}

// TestTransactionLost: when SQLite rolls back the group's transaction, all its Writes fail, no later statement
// commits on its own, and the next transaction works.
func TestTransactionLost(t *testing.T) {
	t.Parallel()
	ctx, st := sqliteStore(t)
	for _, swallowed := range []bool{false, true} {
		var all sync.WaitGroup
		release := holdWriter(ctx, t, st, &all)
		unaffected := func(ctx context.Context, tx *ent.Tx) error { return insert(ctx, tx, "innocent") }
		rolledBack := func(ctx context.Context, tx *ent.Tx) error {
			own, _ := st.Tx(ctx)
			if _, err := own.ExecContext(ctx, "ROLLBACK"); err != nil { // as SQLite does when the disk is full
				t.Error(err)
			}
			if err := insert(ctx, tx, "after"); !errors.Is(err, errRolledBack) {
				t.Errorf("a statement after the end of the transaction: %v", err)
			}
			if swallowed {
				return nil
			}
			return errBroken
		}
		st.group.durations[kindOf(unaffected)], st.group.durations[kindOf(rolledBack)] = time.Nanosecond, time.Nanosecond
		for i, fn := range []func(context.Context, *ent.Tx) error{unaffected, rolledBack, unaffected} {
			all.Go(func() {
				err := st.Write(ctx, fn)
				if lost := i < 2; (err != nil) != lost || i == 0 && !errors.Is(err, errRolledBack) {
					t.Errorf("Write %d (swallowed: %v): %v", i, swallowed, err)
				}
			})
			waitForQueue(st, i+1)
		}
		release()
		all.Wait()
		if rows := st.Reader.Setting.Query().Select(setting.FieldName).StringsX(ctx); !slices.Equal(rows, []string{"innocent"}) {
			t.Errorf("stored %v, want what the third Write wrote", rows)
		}
		if err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error { _, err := tx.Setting.Delete().Exec(ctx); return err }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoTransactionToShare: all queued Writes fail when no transaction can begin.
func TestNoTransactionToShare(t *testing.T) {
	t.Parallel()
	ctx, st := sqliteStore(t)
	var all sync.WaitGroup
	release := holdWriter(ctx, t, st, &all)
	for i := range 3 {
		all.Go(func() {
			if err := st.Write(ctx, func(context.Context, *ent.Tx) error { return nil }); err == nil {
				t.Error("a Write to a closed database succeeds")
			}
		})
		waitForQueue(st, i+1)
	}
	if err := st.writerDB.Close(); err != nil { // the connection in use is closed when it is returned
		t.Error(err)
	}
	release()
	all.Wait()
}
