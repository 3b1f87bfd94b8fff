package workflows

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

func stateOf(revision int64, ended bool, steps ...*workflowsv1.WorkflowStepNode) *runState {
	return &runState{summary: &workflowsv1.WorkflowJobSummary{JobId: "1"}, steps: steps, revision: revision, ended: ended}
}

// A stream sends all steps first, then changed steps, heartbeats while nothing changes, and ends with the run.
func TestWatchSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := &workflowsv1.WorkflowStepNode{StepId: "plan", TaskCount: 1}
		run := &watchedRun{changed: make(chan struct{})}
		var sent []*workflowsv1.WatchJobResponse
		ended := make(chan error)
		go func() {
			ended <- run.send(t.Context(), func(r *workflowsv1.WatchJobResponse) error { sent = append(sent, r); return nil }, 15*time.Second)
		}()
		time.Sleep(20 * time.Second) // no state was read yet, so there is no heartbeat
		run.publish(stateOf(1, false, plan, &workflowsv1.WorkflowStepNode{StepId: "done"}))
		synctest.Wait()
		time.Sleep(31 * time.Second)
		synctest.Wait()
		run.publish(stateOf(2, true, plan, &workflowsv1.WorkflowStepNode{StepId: "done", TaskCount: 1}))
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		var steps []int
		for _, r := range sent {
			steps = append(steps, len(r.GetSteps()))
		}
		if len(steps) != 4 || steps[0] != 2 || steps[1] != 0 || steps[2] != 0 || steps[3] != 1 || sent[3].GetSteps()[0].GetStepId() != "done" {
			t.Errorf("steps of the messages: %v", steps)
		}
		if sent[1].GetRevision() != 1 || sent[1].GetSummary().GetJobId() != "1" {
			t.Errorf("heartbeat %v", sent[1])
		}
	})
}

func TestWatchEnds(t *testing.T) {
	run := &watchedRun{changed: make(chan struct{})}
	gone := errors.New("the client went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := run.send(ctx, nil, time.Hour); !errors.Is(err, gone) {
		t.Errorf("a client that left: %v", err)
	}
	run.publish(&runState{err: gone})
	if err := run.send(t.Context(), nil, time.Hour); !errors.Is(err, gone) {
		t.Errorf("a store that fails: %v", err)
	}
	run.publish(stateOf(1, true))
	if err := run.send(t.Context(), func(*workflowsv1.WatchJobResponse) error { return gone }, time.Hour); !errors.Is(err, gone) {
		t.Errorf("a stream that fails: %v", err)
	}
}

func TestWatchLimits(t *testing.T) {
	key := watchKey{deploymentID: 1, runID: 2}
	w := newWatchers(nil)
	w.perDeployment[1] = maxWatchesPerDeployment
	if _, err := w.join(key); !apierr.Is(err, errorsv1.Reason_REASON_RATE_LIMITED) {
		t.Errorf("of one deployment: %v", err)
	}
	w = newWatchers(nil)
	w.streams = maxWatches
	if _, err := w.join(key); !apierr.Is(err, errorsv1.Reason_REASON_RATE_LIMITED) {
		t.Errorf("of all: %v", err)
	}
	// The reader stops with the last stream.
	stopped := false
	run := &watchedRun{key: key, streams: 2, stop: func() { stopped = true }}
	w.open[key], w.streams, w.perDeployment[1] = run, 2, 2
	if w.leave(run); stopped || w.open[key] != run {
		t.Error("the first one that leaves ends the reading of the other")
	}
	if w.leave(run); !stopped || len(w.open) != 0 || w.streams != 0 || len(w.perDeployment) != 0 {
		t.Errorf("something is left: %v", w)
	}
}
