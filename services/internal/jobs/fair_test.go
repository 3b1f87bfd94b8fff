package jobs

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// owned is a test job of a deployment and a run.
type owned struct {
	DeploymentID int64  `json:"deployment_id"`
	RunID        int64  `json:"run_id,omitempty"`
	Text         string `json:"text"`
}

func (owned) Kind() string { return "owned" }

// newNode returns a node without running workers.
func newNode(t testing.TB, o store.Options) (*store.Store, *Jobs) {
	t.Helper()
	st := storetest.Open(t, o)
	log, _ := newLogger(t)
	return st, newJobs(t, st, log, Work{Register: newNotes().register})
}

// take claims jobs of the default queue for this number of free slots.
func take(t testing.TB, j *Jobs, free int) []*rivertype.JobRow {
	t.Helper()
	exec, ok := j.client.Driver().GetExecutor().(*fairExecutor)
	if !ok {
		t.Fatal("River does not use the fair executor")
	}
	p := fetchParams()
	p.MaxToLock = free
	jobs, err := exec.fair.take(t.Context(), j.queues[river.QueueDefault], p)
	if err != nil {
		t.Error(err)
	}
	return jobs
}

// texts returns the texts of jobs.
func texts(t testing.TB, jobs []*rivertype.JobRow) (list []string) {
	t.Helper()
	for _, job := range jobs {
		var args owned
		if err := json.Unmarshal(job.EncodedArgs, &args); err != nil {
			t.Fatal(err)
		}
		list = append(list, args.Text)
	}
	return list
}

// TestNextSlotGoesToIdleDeployment: a deployment without running jobs gets the next slot, regardless of how
// many jobs of another one wait or run.
func TestNextSlotGoesToIdleDeployment(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st, j := newNode(t, o)
		fill(t, st, testrun.Size(20_000, 100_000), "owned", "default", "available", `{"deployment_id": 1, "run_id": 1, "text": "%d"}`)
		if got := texts(t, take(t, j, 8)); !slices.Equal(got, []string{"1", "2", "3", "4"}) {
			t.Errorf("alone it gets %v", got)
		}
		if got := texts(t, take(t, j, 4)); len(got) != 0 {
			t.Errorf("and then %v", got)
		}
		enqueue(t, st, j, owned{2, 1, "late"}, owned{3, 0, "later"}, note{"upkeep"})
		if got := texts(t, take(t, j, 4)); !slices.Equal(got, []string{"upkeep", "late", "later"}) {
			t.Errorf("the next slots go to %v", got)
		}
	})
}

// TestTurnsAreOfRuns: within a deployment the runs take turns, and within a run River's order applies.
func TestTurnsAreOfRuns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st, j := newNode(t, o)
		many := testrun.Size(20_000, 100_000)
		fill(t, st, many, "owned", "default", "available", `{"deployment_id": 1, "run_id": 1, "text": "wide"}`)
		for _, args := range []owned{{1, 2, "b2"}, {1, 2, "b1"}, {1, 3, "c"}, {1, 0, "none"}} {
			enqueue(t, st, j, args)
		}
		_, writer := st.DB()
		where := " SET priority = 2 WHERE kind = 'owned' AND id = (SELECT MIN(id) FROM river_job WHERE id > " + strconv.Itoa(many) + ")"
		// b2 is older, and has a lower priority
		if _, err := writer.ExecContext(t.Context(), "UPDATE river_job"+where); err != nil {
			t.Fatal(err)
		}
		var got []string
		for range 9 {
			for _, job := range take(t, j, 1) {
				got = append(got, texts(t, []*rivertype.JobRow{job})...)
				j.queues[river.QueueDefault].end(job.ID)
			}
		}
		if want := []string{"none", "wide", "b1", "c", "wide", "b2", "wide", "wide", "wide"}; !slices.Equal(got, want) {
			t.Errorf("the turns are %v, want %v", got, want)
		}
	})
}

// TestClaimedLikeRiver: a claimed job has the same columns as one that River has claimed.
func TestClaimedLikeRiver(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st, j := newNode(t, o)
		_, writer := st.DB()
		var plain riverdriver.Executor = riversqlite.New(writer).GetExecutor()
		if st.Postgres() {
			plain = riverdatabasesql.New(writer).GetExecutor()
		}
		enqueue(t, st, j, owned{1, 2, "job"}, owned{1, 2, "job"})
		for round := range 5 { // attempted_by keeps three of them
			p := fetchParams()
			p.MaxToLock, p.MaxAttemptedBy, p.ClientID = 1, 3, "node "+strconv.Itoa(round)
			fair := j.client.Driver().GetExecutor().(*fairExecutor) //nolint:forcetypeassert // see take
			fair.fair.waiting.asked = time.Time{}
			for _, exec := range []riverdriver.Executor{plain, fair} {
				if jobs, err := exec.JobGetAvailable(t.Context(), p); err != nil || len(jobs) != 1 {
					t.Fatalf("%v, %v", jobs, err)
				}
			}
			if got := take(t, j, 8); len(got) != 0 {
				t.Errorf("a running job was claimed again: %v", got)
			}
			jobs, err := plain.JobGetByIDMany(t.Context(), &riverdriver.JobGetByIDManyParams{ID: []int64{1, 2}})
			if err != nil || len(jobs) != 2 {
				t.Fatalf("%v, %v", jobs, err)
			}
			for i, job := range jobs {
				if job.AttemptedAt == nil || time.Since(*job.AttemptedAt) > time.Minute {
					t.Errorf("job %d was attempted at %v", i, job.AttemptedAt)
				}
				j.queues[river.QueueDefault].end(job.ID)
				job.ID, job.AttemptedAt, job.CreatedAt, job.ScheduledAt, job.Metadata = 0, nil, time.Time{}, time.Time{}, nil
			}
			if jobs[0].State != rivertype.JobStateRunning || !reflect.DeepEqual(jobs[0], jobs[1]) {
				t.Errorf("River made %+v, turns %+v", jobs[0], jobs[1])
			}
			if n := count(t, st, "SELECT COUNT(DISTINCT length(CAST(attempted_at AS text)) / 20) FROM river_job"); n != 1 {
				t.Error("times are written differently")
			}
			if _, err := writer.ExecContext(t.Context(), "UPDATE river_job SET state = 'available'"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestClaimReleasesTheUniqueKey: as soon as a job of OnceWaiting is claimed, another one can be enqueued, also if the
// node dies before the job begins. The key of other jobs stays until they end.
func TestClaimReleasesTheUniqueKey(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st, j := newNode(t, o)
		put := func(opts river.InsertOpts, text string) {
			t.Helper()
			err := st.Write(tenant.System(t.Context()), func(ctx context.Context, _ *ent.Tx) error { return j.Enqueue(ctx, note{text}, &opts) })
			if err != nil {
				t.Fatal(err)
			}
		}
		unique := river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
		for range 2 {
			put(OnceWaiting(), "once")
			put(unique, "other")
		}
		if got := take(t, j, 10); len(got) != 2 {
			t.Fatalf("claimed %d jobs", len(got))
		}
		put(OnceWaiting(), "once")
		put(unique, "other")
		if n := count(t, st, "SELECT COUNT(*) FROM river_job"); n != 3 {
			t.Errorf("there are %d jobs, want another one that is unique while it waits", n)
		}
	})
}

// TestNotDue: jobs that are due later are not claimed, and do not delay others.
func TestNotDue(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st, j := newNode(t, o)
		enqueue(t, st, j, owned{1, 1, "tomorrow"})
		_, writer := st.DB()
		tomorrow := "datetime('now', '+1 day')"
		if st.Postgres() {
			tomorrow = "now() + interval '1 day'"
		}
		if _, err := writer.ExecContext(t.Context(), "UPDATE river_job SET state = 'available', scheduled_at = "+tomorrow); err != nil {
			t.Fatal(err)
		}
		if got := texts(t, take(t, j, 8)); len(got) != 0 {
			t.Errorf("got %v", got)
		}
		enqueue(t, st, j, owned{1, 1, "now"}, owned{1, 2, "too"})
		if got := texts(t, take(t, j, 8)); !slices.Equal(got, []string{"now", "too"}) {
			t.Errorf("got %v", got)
		}
	})
}

// TestNodesTakeDifferentJobs: nodes that poll at the same time claim each job once.
func TestNodesTakeDifferentJobs(t *testing.T) {
	t.Parallel()
	o := store.Options{Database: storetest.Postgres(t), MaxOpen: 5}
	st, first := newNode(t, o)
	nodes := []*Jobs{first}
	for range 2 {
		_, j := newNode(t, o)
		nodes = append(nodes, j)
	}
	const each = 300
	for _, deployment := range []string{"1", "2"} {
		fill(t, st, each, "owned", "default", "available", `{"deployment_id": `+deployment+`, "run_id": 1, "text": "%d"}`)
	}
	var mu sync.Mutex
	seen := map[int64]int{}
	var working sync.WaitGroup
	for _, j := range nodes {
		working.Go(func() {
			for {
				jobs := take(t, j, 8)
				if len(jobs) == 0 {
					return
				}
				for _, job := range jobs {
					mu.Lock()
					seen[job.ID]++
					mu.Unlock()
					j.queues[river.QueueDefault].end(job.ID)
				}
			}
		})
	}
	working.Wait()
	for id, n := range seen {
		if n != 1 {
			t.Errorf("job %d was taken %d times", id, n)
		}
	}
	if len(seen) != 2*each {
		t.Errorf("%d of %d jobs were taken", len(seen), 2*each)
	}
}

// TestLockedJobsAreLeft: a node does not wait for jobs that another node has locked.
func TestLockedJobsAreLeft(t *testing.T) {
	t.Parallel()
	st, j := newNode(t, store.Options{Database: storetest.Postgres(t)})
	enqueue(t, st, j, owned{1, 1, "locked"}, owned{1, 1, "free"})
	_, writer := st.DB()
	tx, err := writer.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "SELECT id FROM river_job ORDER BY id LIMIT 1 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, take(t, j, 1)); !slices.Equal(got, []string{"free"}) {
		t.Errorf("got %v", got)
	}
}

// TestStartBesideManyJobs: in each shared queue, one deployment has its maximum of running jobs and many more
// waiting. A job of another deployment starts within 2 s, whether the running jobs are short or never end.
// (services/job_queues_test.go tests the real queues and kinds.)
func TestStartBesideManyJobs(t *testing.T) {
	testrun.Deep(t) // measures the latency of a neighbour
	t.Parallel()
	queues := []Queue{{Name: "workflows", Workers: 16, Poll: 200 * time.Millisecond}, {Name: "ai", Workers: 8}, {Name: "scans", Workers: 4}}
	for name, slow := range map[string]bool{"quick": false, "slow": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, o store.Options) {
				st := storetest.Open(t, o)
				log, out := newLogger(t)
				seen, release := newNotes(), make(chan struct{})
				j := newJobs(t, st, log, Work{Queues: queues, Register: func(workers *river.Workers) {
					river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[owned]) error {
						switch {
						case job.Args.DeploymentID != 1:
							return seen.run(ctx, job.Args.Text)
						case slow:
							return until(ctx, release)
						}
						return nil
					}))
				}})
				fill(t, st, testrun.Size(20_000, 100_000), "owned", river.QueueDefault, "available", `{"deployment_id": 1, "run_id": 1, "text": "%d"}`)
				for _, q := range queues {
					fill(t, st, 1000, "owned", q.Name, "available", `{"deployment_id": 1, "run_id": %d, "text": "many runs"}`)
				}
				if err := j.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { stop(t, j) })
				receive(t, time.After(2*time.Second)) // the first deployment has its maximum
				for _, queue := range []string{river.QueueDefault, "workflows", "ai", "scans"} {
					var waits []time.Duration
					for range 3 {
						err := st.Write(tenant.System(t.Context()), func(ctx context.Context, _ *ent.Tx) error {
							return j.Enqueue(ctx, owned{2, 1, queue}, &river.InsertOpts{Queue: queue})
						})
						if err != nil {
							t.Fatal(err)
						}
						enqueued := time.Now()
						seen.next(t, queue)
						waits = append(waits, time.Since(enqueued))
					}
					// compare the fastest: a busy machine slows down some, a blocked queue all
					if slices.Sort(waits); waits[0] > 2*time.Second {
						t.Errorf("in queue %s the other deployment's job began after %s", queue, waits)
					}
				}
				close(release)
				stop(t, j)
				out.requireQuiet(t)
			})
		})
	}
}
