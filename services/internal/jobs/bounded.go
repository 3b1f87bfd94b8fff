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
	// timeoutGrace is how long a run may continue after its timeout, to save its progress.
	timeoutGrace = 30 * time.Second
	// stopGrace is how long a run may continue after Stop has cancelled it. It is shorter than cancelGrace, so that
	// Stop sees every run end and the failures are recorded.
	stopGrace = 4 * time.Second
	// maxStacks limits how many bytes of stacks are searched for the stack of a run.
	maxStacks = 8 << 20
)

// AddWorker registers a worker. A run that ignores the end of its context (timeout or Stop) is abandoned: it counts
// as failed, its worker slot is free again, and the log has its stack.
func AddWorker[T river.JobArgs](workers *river.Workers, worker river.Worker[T]) {
	river.AddWorker(workers, &bounded[T]{Worker: worker, timeoutGrace: timeoutGrace, stopGrace: stopGrace})
}

// bounded is a worker that abandons runs which ignore their context.
type bounded[T river.JobArgs] struct {
	river.Worker[T]
	timeoutGrace, stopGrace time.Duration
}

// result is how a run ended.
type result struct {
	err      error
	panicked any
	stack    []byte // the stack of the panic
}

// Work runs the job. It returns when the run ends or is abandoned.
func (b *bounded[T]) Work(ctx context.Context, job *river.Job[T]) error {
	began, ended := make(chan []byte, 1), make(chan result, 1)
	go func() {
		began <- goroutine()
		end := result{err: errors.New("the job called runtime.Goexit")}
		defer func() { ended <- end }()
		defer func() {
			if p := recover(); p != nil {
				end = result{panicked: p, stack: debug.Stack()}
			}
		}()
		end.err = b.Worker.Work(ctx, job)
	}()
	var end result
	select {
	case end = <-ended:
	case <-ctx.Done():
		more := b.stopGrace
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			more = b.timeoutGrace
		}
		timer := time.NewTimer(more)
		defer timer.Stop()
		select {
		case end = <-ended:
		case <-timer.C:
			return abandon(ctx, job.Kind, job.ID, more, <-began)
		}
	}
	if end.panicked != nil {
		panic(fmt.Sprintf("%v\n\n%s", end.panicked, end.stack)) // River recovers it
	}
	return end.err
}

// abandon logs the stack of a run that does not end, and returns its error.
func abandon(ctx context.Context, kind string, id int64, after time.Duration, goroutine []byte) error {
	if j := FromContext(ctx); j != nil {
		j.log.ErrorContext(ctx, "a background job does not stop and is abandoned; this is a bug in the server", "kind", kind, "id", id,
			"cause", context.Cause(ctx), "stack", string(stackOf(goroutine)))
	}
	return fmt.Errorf("the job did not stop within %s of its end (%w) and was abandoned", after, context.Cause(ctx))
}

// goroutine returns the start of the calling goroutine's stack: "goroutine 7 [".
func goroutine() []byte {
	text := make([]byte, 64)
	text = text[:runtime.Stack(text, false)]
	return text[:bytes.IndexByte(text, '[')+1]
}

// stackOf returns the stack of a goroutine. It is empty if the goroutine has ended or the stacks exceed maxStacks.
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
