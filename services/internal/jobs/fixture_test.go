package jobs

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// testTimeout is generous for a busy machine. Tests normally need less than a hundredth of it.
const testTimeout = 2 * time.Minute

// logs collects the log output.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// requireQuiet fails the test if a line of level WARN or ERROR was logged.
func (l *logs) requireQuiet(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN") {
			t.Errorf("logged: %s", line)
		}
	}
}

func newLogger(t testing.TB) (*slog.Logger, *logs) {
	t.Helper()
	out := &logs{}
	log, err := telemetry.NewLogger(out, "text", "debug")
	if err != nil {
		t.Fatal(err)
	}
	return log, out
}

// note is a test job. Each run sends it to the test.
type note struct {
	Text string `json:"text"`
}

func (note) Kind() string { return "note" }

// onceNote is a note that is unique while it waits.
type onceNote struct {
	Text string `json:"text"`
}

func (onceNote) Kind() string                 { return "once_note" }
func (onceNote) InsertOpts() river.InsertOpts { return OnceWaiting() }

// notes is a worker that the test observes and blocks.
type notes struct {
	begun chan string
	// work is the body of a run; nil means none.
	work func(ctx context.Context, text string) error
}

func newNotes() *notes { return &notes{begun: make(chan string, 100)} }

func (n *notes) run(ctx context.Context, text string) error {
	n.begun <- text
	if n.work == nil {
		return nil
	}
	return n.work(ctx, text)
}

func (n *notes) register(workers *river.Workers) {
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[owned]) error { return n.run(ctx, job.Args.Text) }))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[note]) error { return n.run(ctx, job.Args.Text) }))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[onceNote]) error { return n.run(ctx, job.Args.Text) }))
}

// next waits for the next run.
func (n *notes) next(t testing.TB, want string) {
	t.Helper()
	if got := receive(t, n.begun); got != want {
		t.Fatalf("the job that runs is %q, want %q", got, want)
	}
}

func receive[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(testTimeout):
		t.Fatal("nothing happened")
		panic("unreachable")
	}
}

// until blocks a run.
func until(ctx context.Context, release <-chan struct{}) error {
	select {
	case <-release:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func newJobs(t testing.TB, st *store.Store, log *slog.Logger, work ...Work) *Jobs {
	t.Helper()
	j, err := New(st, log, work...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// start runs a node until the test ends.
func start(t testing.TB, st *store.Store, log *slog.Logger, work ...Work) *Jobs {
	t.Helper()
	j := newJobs(t, st, log, work...)
	if err := j.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, j) })
	return j
}

func stop(t testing.TB, j *Jobs) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := j.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// enqueue adds jobs in one transaction.
func enqueue(t testing.TB, st *store.Store, j *Jobs, args ...river.JobArgs) {
	t.Helper()
	err := st.Write(tenant.System(t.Context()), func(ctx context.Context, _ *ent.Tx) error {
		for _, a := range args {
			if err := j.Enqueue(ctx, a, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// count returns the single number of a query.
func count(t testing.TB, st *store.Store, query string) int {
	t.Helper()
	reader, _ := st.DB()
	var n int
	if err := reader.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// events subscribes to River's events of a kind.
func events(t testing.TB, j *Jobs, kind river.EventKind) <-chan *river.Event {
	t.Helper()
	ch, cancel := j.client.Subscribe(kind)
	t.Cleanup(cancel)
	return ch
}

func fetchParams() *riverdriver.JobGetAvailableParams {
	return &riverdriver.JobGetAvailableParams{ClientID: "test", MaxAttemptedBy: 10, MaxToLock: 10, Queue: river.QueueDefault}
}

func stuckParams() *riverdriver.JobGetStuckParams {
	return &riverdriver.JobGetStuckParams{Max: 10, StuckHorizon: time.Now()}
}
