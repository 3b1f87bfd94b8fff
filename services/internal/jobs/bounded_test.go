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

// stubborn is a job that ignores its context.
type stubborn struct {
	Text string `json:"text"`
}

func (stubborn) Kind() string                 { return "stubborn" }
func (stubborn) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: "narrow"} }

type stubbornWorker struct {
	river.WorkerDefaults[stubborn]
	begun   chan string
	release chan struct{}
	timeout time.Duration
}

func (w *stubbornWorker) Timeout(*river.Job[stubborn]) time.Duration { return w.timeout }

func (w *stubbornWorker) Work(_ context.Context, job *river.Job[stubborn]) error {
	w.begun <- job.Args.Text
	switch job.Args.Text {
	case "hangs":
		hangHere(w.release)
	case "panics":
		panic("a defect of the job")
	}
	return nil
}

// hangHere is a function name to look for in stacks.
func hangHere(release <-chan struct{}) { <-release }

// newStubborn returns a worker, and its Work with a queue of one worker.
func newStubborn(t *testing.T, timeout, late time.Duration) (*stubbornWorker, Work) {
	w := &stubbornWorker{begun: make(chan string, 10), release: make(chan struct{}), timeout: timeout}
	t.Cleanup(func() { close(w.release) })
	return w, Work{
		Register: func(workers *river.Workers) {
			river.AddWorker(workers, &bounded[stubborn]{Worker: w, timeoutGrace: late, stopGrace: stopGrace})
		},
		Queues: []Queue{{Name: "narrow", Workers: 1}},
	}
}

// TestJobThatIgnoresItsTimeout: a job that never returns is abandoned at its timeout. It counts as failed, and the
// next job runs.
func TestJobThatIgnoresItsTimeout(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, out := newLogger(t)
		w, work := newStubborn(t, 200*time.Millisecond, 200*time.Millisecond)
		j := start(t, st, log, work)
		failed := events(t, j, river.EventKindJobFailed)
		enqueue(t, st, j, stubborn{"hangs"})
		if got := receive(t, w.begun); got != "hangs" {
			t.Fatalf("%s runs", got)
		}
		enqueue(t, st, j, stubborn{"ends"})
		if event := receive(t, failed); len(event.Job.Errors) == 0 || !strings.Contains(event.Job.Errors[0].Error, "was abandoned") {
			t.Errorf("the job failed with %v", event.Job.Errors)
		}
		for got := ""; got != "ends"; got = receive(t, w.begun) { // the first job may be retried before
		}
		requireStack(t, out)
	})
}

// TestStopBesideAJobThatNeverReturns: Stop returns although a job ignores its context. The job is retried after the
// next start.
func TestStopBesideAJobThatNeverReturns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, out := newLogger(t)
		w, work := newStubborn(t, time.Hour, time.Hour)
		j := newJobs(t, st, log, work)
		if err := j.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		enqueue(t, st, j, stubborn{"hangs"})
		receive(t, w.begun)
		expired, cancel := context.WithCancel(t.Context())
		cancel()
		if err := j.Stop(expired); err != nil {
			t.Errorf("stop: %v", err)
		}
		if n := count(t, st, "SELECT COUNT(*) FROM river_job WHERE state IN ('available', 'retryable') AND kind = 'stubborn' AND attempt = 1"); n != 1 {
			t.Error("the job is not waiting for a retry")
		}
		requireStack(t, out)
	})
}

func requireStack(t *testing.T, out *logs) {
	t.Helper()
	out.mu.Lock()
	defer out.mu.Unlock()
	for line := range strings.Lines(out.text.String()) {
		if strings.Contains(line, "is abandoned") && strings.Contains(line, "kind=stubborn") && strings.Contains(line, "hangHere") {
			return
		}
	}
	t.Errorf("the log does not say where the job hangs:\n%s", out.text.String())
}

// TestPanicsOfJobs: a panic fails only its own job, and the stack is kept.
func TestPanicsOfJobs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, _ := newLogger(t)
		w, work := newStubborn(t, time.Hour, time.Hour)
		j := start(t, st, log, work)
		failed := events(t, j, river.EventKindJobFailed)
		enqueue(t, st, j, stubborn{"panics"})
		receive(t, w.begun)
		event := receive(t, failed)
		if len(event.Job.Errors) == 0 || !strings.Contains(event.Job.Errors[0].Error, "a defect of the job") || !strings.Contains(event.Job.Errors[0].Error, "stubbornWorker") {
			t.Errorf("the job failed with %v", event.Job.Errors)
		}
	})
}
