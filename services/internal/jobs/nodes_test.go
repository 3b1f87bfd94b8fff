package jobs

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// TestNodesShareTheQueue: several nodes share one PostgreSQL database, and every job runs once.
func TestNodesShareTheQueue(t *testing.T) {
	t.Parallel()
	o := store.Options{Database: storetest.Postgres(t), MaxOpen: 5}
	log, out := newLogger(t)
	seen := newNotes()
	st := storetest.Open(t, o)
	nodes := []*Jobs{start(t, st, log, Work{Register: seen.register})}
	for range 2 {
		nodes = append(nodes, start(t, storetest.Open(t, o), log, Work{Register: seen.register}))
	}
	const n = 50
	for range n {
		enqueue(t, st, nodes[0], note{"shared"})
	}
	for range n {
		seen.next(t, "shared")
	}
	for _, node := range nodes {
		stop(t, node)
	}
	if left := len(seen.begun); left != 0 {
		t.Errorf("%d runs too many", left)
	}
	if done := count(t, st, "SELECT COUNT(*) FROM river_job WHERE state = 'completed' AND attempt = 1"); done != n {
		t.Errorf("%d jobs were completed at the first attempt, want %d", done, n)
	}
	out.requireQuiet(t)
}

func TestStopWaitsForRunningJobs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, out := newLogger(t)
		seen := newNotes()
		release := make(chan struct{})
		seen.work = func(ctx context.Context, _ string) error { return until(ctx, release) }
		j := start(t, st, log, Work{Register: seen.register})
		enqueue(t, st, j, note{"at work"})
		seen.next(t, "at work")

		stopped := make(chan error, 1)
		go func() { stopped <- j.Stop(context.WithoutCancel(t.Context())) }()
		enqueue(t, st, j, note{"too late"}) // stopping nodes still accept jobs of requests
		select {
		case err := <-stopped:
			t.Fatalf("stopped (%v) while a job was running", err)
		default:
		}
		close(release)
		if err := receive(t, stopped); err != nil {
			t.Errorf("stop: %v", err)
		}
		if n := count(t, st, "SELECT COUNT(*) FROM river_job WHERE state = 'completed' AND attempt = 1"); n < 1 {
			t.Error("the job that was running is not completed")
		}
		if n := count(t, st, "SELECT COUNT(*) FROM river_job WHERE state = 'running'"); n != 0 {
			t.Errorf("%d jobs are still marked as running", n)
		}
		out.requireQuiet(t)
	})
}

func TestStopCancelsJobsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, out := newLogger(t)
		seen := newNotes()
		seen.work = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		j := start(t, st, log, Work{Register: seen.register})
		enqueue(t, st, j, note{"endless"})
		seen.next(t, "endless")
		expired, cancel := context.WithCancel(t.Context())
		cancel()
		if err := j.Stop(expired); err != nil {
			t.Errorf("stop: %v", err)
		}
		if n := count(t, st, "SELECT COUNT(*) FROM river_job WHERE state IN ('available', 'retryable') AND attempt = 1"); n != 1 {
			t.Error("the job is not waiting for a retry")
		}
		if text := out.text.String(); strings.Contains(text, "level=ERROR") || !strings.Contains(text, "are cancelled; they will be retried") {
			t.Errorf("logged:\n%s", text)
		}
	})
}

// TestStopAtAnyTime: a stop at any moment returns quickly and without an error.
func TestStopAtAnyTime(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, out := newLogger(t)
		seen := newNotes()
		for range 20 {
			j := newJobs(t, st, log, Work{Register: seen.register, Periodic: []*river.PeriodicJob{Every(time.Second, onceNote{"tick"})}})
			if err := j.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			stop(t, j)
			stop(t, j)
		}
		j := newJobs(t, st, log, Work{Register: seen.register, Periodic: []*river.PeriodicJob{Every(time.Second, onceNote{"tick"})}})
		if err := j.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen.next(t, "tick")
		stop(t, j)
		out.requireQuiet(t)
	})
}
