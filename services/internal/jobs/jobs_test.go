package jobs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

func TestEnqueueFollowsTheTransaction(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, out := newLogger(t)
		seen := newNotes()
		j := start(t, st, log, Work{Register: seen.register})

		broken := errors.New("changed my mind")
		err := st.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
			if err := tx.Setting.Create().SetName("cause").SetValue([]byte("x")).Exec(ctx); err != nil {
				return err
			}
			if err := j.Enqueue(ctx, note{"rolled back"}, nil); err != nil {
				return err
			}
			return broken
		})
		if !errors.Is(err, broken) {
			t.Fatalf("got %v, want %v", err, broken)
		}
		if n := count(t, st, "SELECT COUNT(*) FROM river_job"); n != 0 {
			t.Errorf("%d jobs survived the rollback", n)
		}

		err = st.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
			if err := j.Enqueue(ctx, note{"committed"}, nil); err != nil {
				return err
			}
			if n := count(t, st, "SELECT COUNT(*) FROM river_job"); n != 0 {
				t.Errorf("others see %d jobs before the commit", n)
			}
			return tx.Setting.Create().SetName("cause").SetValue([]byte("x")).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		seen.next(t, "committed")
		if n := count(t, st, "SELECT COUNT(*) FROM settings WHERE name = 'cause'"); n != 1 {
			t.Errorf("the job ran without what caused it")
		}
		stop(t, j)
		out.requireQuiet(t)
	})
}

func TestEnqueueOutsideATransaction(t *testing.T) {
	t.Parallel()
	st, other := storetest.Open(t, store.Options{DataDir: storetest.SQLite(t)}), storetest.Open(t, store.Options{DataDir: storetest.SQLite(t)})
	log, _ := newLogger(t)
	j := newJobs(t, st, log, Work{Register: newNotes().register})
	if err := j.Enqueue(t.Context(), note{}, nil); err == nil || !strings.Contains(err.Error(), "enqueue note: not inside store.Write") {
		t.Errorf("outside of a transaction: %v", err)
	}
	ctx := tenant.System(t.Context())
	_ = other.Write(ctx, func(ctx context.Context, _ *ent.Tx) error {
		if err := j.Enqueue(ctx, note{}, nil); err == nil {
			t.Error("Enqueue accepted the transaction of another store")
		}
		return nil
	})
	_ = st.Write(ctx, func(inside context.Context, _ *ent.Tx) error {
		if err := j.Enqueue(ctx, note{}, nil); err == nil {
			t.Error("Enqueue accepted the context from before the transaction")
		}
		if err := j.Enqueue(inside, unknown{}, nil); err == nil || !strings.Contains(err.Error(), "enqueue nobody_does_this") {
			t.Errorf("a job without a worker: %v", err)
		}
		return nil
	})
}

type unknown struct{}

func (unknown) Kind() string { return "nobody_does_this" }

func TestJobsSurviveARestart(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		log, out := newLogger(t)
		before := storetest.Open(t, o)
		seen := newNotes()
		enqueue(t, before, newJobs(t, before, log, Work{Register: seen.register}), note{"left behind"})
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}

		st := storetest.Open(t, o)
		depth, err := newJobs(t, st, log, Work{Register: seen.register}).Depth(t.Context())
		if err != nil || depth[river.QueueDefault] != 1 {
			t.Errorf("depth is %v, %v; want one job in the default queue", depth, err)
		}
		j := newJobs(t, st, log, Work{Register: seen.register})
		done := events(t, j, river.EventKindJobCompleted)
		if err := j.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen.next(t, "left behind")
		receive(t, done)
		stop(t, j)
		if depth, err = j.Depth(t.Context()); err != nil || depth[river.QueueDefault] != 0 || len(depth) != 1 {
			t.Errorf("afterwards depth is %v, %v", depth, err)
		}
		out.requireQuiet(t)
	})
}

// TestJobsOfAKilledProcessAreRescued: a killed process leaves a job in the state running.
func TestJobsOfAKilledProcessAreRescued(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, _ := newLogger(t)
		seen := newNotes()
		j := newJobs(t, st, log, Work{Register: seen.register})
		enqueue(t, st, j, note{"interrupted"})
		long := "attempted_at = now() - interval '2 hours'"
		if !st.Postgres() {
			long = "attempted_at = datetime('now', '-2 hours')"
		}
		_, writer := st.DB()
		if _, err := writer.ExecContext(t.Context(), "UPDATE river_job SET state = 'running', attempt = 1, "+long); err != nil {
			t.Fatal(err)
		}
		if err := j.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop(t, j) })
		seen.next(t, "interrupted")
	})
}

func TestFailedJobsAreRetried(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, out := newLogger(t)
		seen := newNotes()
		failed := false
		seen.work = func(context.Context, string) error {
			if failed {
				return nil
			}
			failed = true
			return errors.New("the other side is down")
		}
		j := start(t, st, log, Work{Register: seen.register})
		enqueue(t, st, j, note{"again"})
		seen.next(t, "again")
		seen.next(t, "again")
		stop(t, j)
		if text := out.text.String(); !strings.Contains(text, "the other side is down") || !strings.Contains(text, "level=WARN") {
			t.Error("the failure was not logged")
		}
	})
}

func TestOnceWaiting(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, out := newLogger(t)
		seen := newNotes()
		release := make(chan struct{})
		seen.work = func(ctx context.Context, text string) error {
			if text == "slow" {
				return until(ctx, release)
			}
			return nil
		}
		j := newJobs(t, st, log, Work{Register: seen.register})
		done := events(t, j, river.EventKindJobCompleted)
		for range 3 { // in separate transactions, like imports
			enqueue(t, st, j, onceNote{"slow"}, onceNote{"slow"})
		}
		if n := count(t, st, "SELECT COUNT(*) FROM river_job"); n != 1 {
			t.Fatalf("%d jobs wait, want 1", n)
		}
		if err := j.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop(t, j) })
		seen.next(t, "slow")

		// One runs already. A new one is a separate job, but only one is added.
		enqueue(t, st, j, onceNote{"slow"}, onceNote{"slow"})
		if n := count(t, st, "SELECT COUNT(*) FROM river_job"); n != 2 {
			t.Errorf("there are %d jobs, want the running one and one more", n)
		}
		seen.next(t, "slow")
		enqueue(t, st, j, onceNote{"other"}, onceNote{"other"})
		seen.next(t, "other")
		close(release)
		for range 3 {
			receive(t, done)
		}
		stop(t, j)
		if n := len(seen.begun); n != 0 {
			t.Errorf("%d runs too many", n)
		}
		out.requireQuiet(t)
	})
}

func TestPeriodicJobs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, out := newLogger(t)
		seen := newNotes()
		j := start(t, st, log, Work{Register: seen.register, Periodic: []*river.PeriodicJob{Every(time.Second, onceNote{"tick"})}})
		for range 3 { // at the start, and then at each interval
			seen.next(t, "tick")
		}
		stop(t, j)
		out.requireQuiet(t)
	})
}
