package jobs

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// longWrite is how long an import holds the writer in this test. It is long enough for an election (every 5 s) to
// begin and exceed River's timeout (5 s).
const longWrite = 11 * time.Second

// TestLongWriteTransaction: a transaction that holds the SQLite writer for long causes no error, and jobs run after
// it.
func TestLongWriteTransaction(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	t.Parallel()
	st := storetest.Open(t, store.Options{DataDir: storetest.SQLite(t)})
	log, out := newLogger(t)
	seen, ticks, release := newNotes(), newNotes(), make(chan struct{})
	seen.work = func(ctx context.Context, _ string) error { return until(ctx, release) }
	j := start(t, st, log, Work{
		Register: func(workers *river.Workers) {
			river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[note]) error { return seen.run(ctx, job.Args.Text) }))
			river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[onceNote]) error { return ticks.run(ctx, job.Args.Text) }))
		},
		Periodic: []*river.PeriodicJob{Every(time.Second, onceNote{"tick"})},
	})
	ticks.next(t, "tick") // this node has become the leader
	enqueue(t, st, j, note{"before"})
	seen.next(t, "before")

	err := st.Write(tenant.System(t.Context()), func(ctx context.Context, _ *ent.Tx) error {
		close(release) // the result of this job must be written now
		receive(t, time.After(longWrite))
		return j.Enqueue(ctx, note{"inside"}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, st, j, note{"after"})
	ran := []string{receive(t, seen.begun), receive(t, seen.begun)} // concurrently
	slices.Sort(ran)
	if !slices.Equal(ran, []string{"after", "inside"}) {
		t.Errorf("afterwards %v ran", ran)
	}
	for len(ticks.begun) > 0 {
		<-ticks.begun
	}
	ticks.next(t, "tick") // it still is the leader
	stop(t, j)
	if n := count(t, st, "SELECT COUNT(*) FROM river_job WHERE kind = 'note' AND state = 'completed' AND attempt = 1"); n != 3 {
		t.Errorf("%d of 3 jobs were completed at the first attempt", n)
	}
	out.requireQuiet(t)
}

// TestFetchingWaitsForNoWriter: without jobs, fetching does not acquire the writer.
func TestFetchingWaitsForNoWriter(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, store.Options{DataDir: storetest.SQLite(t)})
	log, _ := newLogger(t)
	j := newJobs(t, st, log, Work{Register: newNotes().register})
	err := st.Write(tenant.System(t.Context()), func(context.Context, *ent.Tx) error {
		exec := j.client.Driver().GetExecutor()
		if found, err := exec.JobGetAvailable(t.Context(), fetchParams()); err != nil || len(found) != 0 {
			t.Errorf("fetched %v, %v", found, err)
		}
		if stuck, err := exec.JobGetStuck(t.Context(), stuckParams()); err != nil || len(stuck) != 0 {
			t.Errorf("stuck %v, %v", stuck, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWithoutDeadline(t *testing.T) {
	t.Parallel()
	type key struct{}
	parent, cancelParent := context.WithCancelCause(context.WithValue(t.Context(), key{}, "kept"))
	expired, cancelExpired := context.WithDeadline(parent, time.Unix(0, 0))
	defer cancelExpired()
	ctx, release := withoutDeadline(expired)
	if err := ctx.Err(); err != nil {
		t.Errorf("a deadline ends it: %v", err)
	}
	if _, ok := ctx.Deadline(); ok || ctx.Value(key{}) != "kept" {
		t.Error("it has a deadline, or lost its values")
	}
	release()
	receive(t, ctx.Done())

	reason := errors.New("River stops")
	ctx, release = withoutDeadline(parent)
	defer release()
	cancelParent(reason)
	receive(t, ctx.Done())
	if cause := context.Cause(ctx); !errors.Is(cause, reason) {
		t.Errorf("it ended by %v, want %v", cause, reason)
	}
}
