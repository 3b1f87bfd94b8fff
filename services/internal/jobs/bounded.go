package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/riverqueue/river"
)

const (
	// lateTime is how long a run may go on after its time is up. It covers the last writing of what was done.
	lateTime = 30 * time.Second
	// stoppingTime is the same after Stop cancelled the run. It is shorter than cutOffTime, so that Stop sees the end of
	// all runs, and that they failed is written down.
	stoppingTime = 4 * time.Second
	// maxStacks is in bytes: that much is searched for the stack of a run.
	maxStacks = 8 << 20
)

// AddWorker registers a worker. A run that goes on after its context has ended, because its time was up or Stop
// cancelled it, is left behind: it counts as failed, its place in the queue is free again, and the log says where it
// hangs.
func AddWorker[T river.JobArgs](workers *river.Workers, worker river.Worker[T]) {
	river.AddWorker(workers, &bounded[T]{Worker: worker, late: lateTime, stopping: stoppingTime})
}

// bounded is a worker whose runs cannot keep their place.
type bounded[T river.JobArgs] struct {
	river.Worker[T]
	late, stopping time.Duration
}

// run is how a run ended.
type run struct {
	err      error
	panicked any
	stack    []byte // of the panic
}

// Work returns when the run has ended, or is too late.
func (b *bounded[T]) Work(ctx context.Context, job *river.Job[T]) error {
	began, ended := make(chan []byte, 1), make(chan run, 1)
	go func() {
		began <- goroutine()
		end := run{err: errors.New("the job ended its goroutine")} // runtime.Goexit
		defer func() { ended <- end }()
		defer func() {
			if p := recover(); p != nil {
				end = run{panicked: p, stack: debug.Stack()}
			}
		}()
		end.err = b.Worker.Work(ctx, job)
	}()
	var end run
	select {
	case end = <-ended:
	case <-ctx.Done():
		more := b.stopping
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			more = b.late
		}
		timer := time.NewTimer(more)
		defer timer.Stop()
		select {
		case end = <-ended:
		case <-timer.C:
			return leaveBehind(ctx, job.Kind, job.ID, more, <-began)
		}
	}
	if end.panicked != nil {
		panic(fmt.Sprintf("%v\n\n%s", end.panicked, end.stack)) // the queue handles it
	}
	return end.err
}

// leaveBehind tells the operator of a run that does not end, and the queue that it failed.
func leaveBehind(ctx context.Context, kind string, id int64, after time.Duration, goroutine []byte) error {
	if j := FromContext(ctx); j != nil {
		j.log.ErrorContext(ctx, "a background job does not end and is left behind; this is a defect of the server", "kind", kind, "id", id,
			"cause", context.Cause(ctx), "stack", string(stackOf(goroutine)))
	}
	return fmt.Errorf("the job did not end %s after it had to (%w) and was left behind", after, context.Cause(ctx))
}

// goroutine is the beginning of the stack of the one that calls it: "goroutine 7 [".
func goroutine() []byte {
	text := make([]byte, 64)
	text = text[:runtime.Stack(text, false)]
	return text[:bytes.IndexByte(text, '[')+1]
}

// stackOf finds the stack of a goroutine; it is empty when the goroutine has ended or there are too many of them.
func stackOf(goroutine []byte) []byte {
	all := make([]byte, maxStacks)
	all = all[:runtime.Stack(all, true)]
	for stack := range bytes.SplitSeq(all, []byte("\n\n")) {
		if bytes.HasPrefix(stack, goroutine) {
			return stack
		}
	}
	return nil
}
