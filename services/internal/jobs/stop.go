package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"
)

// Start begins to work on jobs and returns; they run until Stop, also when ctx ends. It may be called once. Without
// workers it does nothing.
func (j *Jobs) Start(ctx context.Context) error {
	if !j.works {
		return nil
	}
	// River closes subscriptions when the last job has ended and its end is written. Queues are never paused here, so that
	// nothing else comes.
	events, cancel := j.client.Subscribe(river.EventKindQueuePaused)
	if err := j.client.Start(context.WithoutCancel(ctx)); err != nil {
		cancel()
		return fmt.Errorf("start background jobs: %w", err)
	}
	go func() {
		defer close(j.worked)
		for range events {
		}
	}()
	return nil
}

// Stopping is closed when Stop begins: a job that works as long as there is something to do ends soon then.
func (j *Jobs) Stopping() <-chan struct{} { return j.stopping }

// Stop takes up no more jobs and waits for those that run. When ctx is done they are cancelled, to be tried again after
// the next start; an error says that some did not even end then. Without Start it does nothing.
func (j *Jobs) Stop(ctx context.Context) error {
	j.stop.Do(func() { close(j.stopping) })
	if err := j.end(ctx, j.client.Stop); err == nil {
		return nil
	}
	j.log.WarnContext(ctx, "background jobs are still running and are cancelled; they will be tried again")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cutOffTime)
	defer cancel()
	if err := j.end(ctx, j.client.StopAndCancel); err != nil {
		return fmt.Errorf("background jobs do not end %s after they were cancelled: %w", cutOffTime, err)
	}
	return nil
}

// end waits for River to stop, but not for long once all jobs have ended. River v0.31.0 can hang then: an elector that
// loses its leadership before the news of having won it was taken tells nobody, holding the lock that its listener
// needs to go away. By that time it has resigned, and nothing that matters is left to do.
func (j *Jobs) end(ctx context.Context, stop func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-ctx.Done():
			return
		case <-j.worked:
		}
		leftover := time.NewTimer(leftoverTime)
		defer leftover.Stop()
		select {
		case <-ctx.Done():
		case <-leftover.C:
			cancel()
		}
	}()
	err := stop(ctx)
	if err == nil {
		return nil
	}
	select {
	case <-j.worked:
		j.log.DebugContext(ctx, "all background jobs have ended; something of River has not", "error", err)
		return nil
	default:
		return err
	}
}
