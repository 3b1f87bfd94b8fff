package jobs

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// TestQueuesDoNotWaitForEachOther: a full queue does not delay other queues.
func TestQueuesDoNotWaitForEachOther(t *testing.T) {
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
		j := newJobs(t, st, log, Work{Register: seen.register, Queues: []Queue{{Name: "slow", Workers: 1, Poll: 100 * time.Millisecond}}})
		slow := func() {
			err := st.Write(tenant.System(t.Context()), func(ctx context.Context, _ *ent.Tx) error {
				return j.Enqueue(ctx, note{"slow"}, &river.InsertOpts{Queue: "slow"})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		slow()
		slow()
		if err := j.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop(t, j) })
		seen.next(t, "slow")
		enqueue(t, st, j, note{"quick"})
		seen.next(t, "quick")
		close(release)
		seen.next(t, "slow")
		stop(t, j)
		out.requireQuiet(t)
	})
}

// TestWaiting: the database is asked once for all queues, and again when the answer is too old for a queue.
func TestWaiting(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, _ := newLogger(t)
		j := newJobs(t, st, log, Work{Register: newNotes().register, Queues: []Queue{{Name: "other", Workers: 1}, {Name: "empty", Workers: 1}}})
		put := func(queue string, at time.Time) {
			err := st.Write(tenant.System(t.Context()), func(ctx context.Context, _ *ent.Tx) error {
				return j.Enqueue(ctx, note{"x"}, &river.InsertOpts{Queue: queue, ScheduledAt: at})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		w := j.client.Driver().GetExecutor().(*fairExecutor).fair.waiting //nolint:forcetypeassert // see take
		want := func(queue string, old time.Duration, want bool) {
			t.Helper()
			if has, err := w.has(t.Context(), queue, old); err != nil || has != want {
				t.Errorf("%s has jobs: %v, %v", queue, has, err)
			}
		}
		put(river.QueueDefault, time.Time{})
		put("other", time.Time{})
		put("empty", time.Now().Add(time.Hour))
		want("empty", 0, false)
		put("empty", time.Time{})
		want("other", time.Hour, true)
		want("other", time.Hour, false) // it was polled since
		want(river.QueueDefault, time.Hour, true)
		want("empty", time.Hour, false) // too new for the answer
		want("empty", 0, true)

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.has(ended, "other", 0); err == nil {
			t.Error("a failed query is no error")
		}
		want("other", time.Hour, false) // not each queue repeats a query that fails
		want("other", 0, true)
	})
}

// TestDepth: counting has the same cost for any number of waiting jobs.
func TestDepth(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, _ := newLogger(t)
		j := newJobs(t, st, log, Work{Register: newNotes().register, Queues: []Queue{{Name: "wide", Workers: 1}, {Name: "empty", Workers: 1}}})
		fill(t, st, maxDepth+5, "note", "wide", "available", `{"deployment_id": 1}`)
		fill(t, st, 3, "note", "wide", "retryable", `{"deployment_id": 2}`)
		fill(t, st, 2, "note", "default", "scheduled", `{"deployment_id": 1}`)
		depth, err := j.Depth(t.Context())
		if want := map[string]int64{"wide": maxDepth + 3, "default": 0}; err != nil || !maps.Equal(depth, want) {
			t.Errorf("depth is %v, %v; want %v", depth, err, want)
		}
		for deployment, want := range map[int64]int64{1: maxDepth + 5, 2: 3, 3: 0} {
			if n, err := j.Waiting(t.Context(), "wide", deployment); err != nil || n != want {
				t.Errorf("deployment %d has %d waiting jobs, %v; want %d", deployment, n, err, want)
			}
		}
	})
}

func TestLostJobs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, _ := newLogger(t)
		j := newJobs(t, st, log, Work{Register: newNotes().register})
		enqueue(t, st, j, note{"taken long ago"}, note{"taken now"}, note{"waits"}, onceNote{"another kind"})
		ago := func(interval string) string {
			if st.Postgres() {
				return "now() - interval '" + interval + "'"
			}
			return "strftime('%Y-%m-%d %H:%M:%f', 'now', '-" + interval + "')"
		}
		_, writer := st.DB()
		for text, interval := range map[string]string{"taken long ago": "2 minutes", "taken now": "2 seconds", "another kind": "2 minutes"} {
			query := "UPDATE river_job SET state = 'running', attempt = 1, attempted_at = " + ago(interval) + " WHERE CAST(args AS text) LIKE '%" + text + "%'"
			if !st.Postgres() {
				query = "UPDATE river_job SET state = 'running', attempt = 1, attempted_at = " + ago(interval) + " WHERE json_extract(args, '$.text') = '" + text + "'"
			}
			if _, err := writer.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		lost, err := j.Lost(t.Context(), note{}.Kind(), time.Now().Add(-time.Minute))
		if err != nil || len(lost) != 1 || !containsText(lost[0], "taken long ago") {
			t.Errorf("got %s, %v", lost, err)
		}
	})
}

func containsText(args []byte, text string) bool {
	return string(args) == `{"text":"`+text+`"}` || string(args) == `{"text": "`+text+`"}`
}
