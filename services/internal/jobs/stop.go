package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"
)

// Start starts the workers and returns. They run until Stop; the end of ctx does not stop them. Call it once.
// Without workers it does nothing.
func (j *Jobs) Start(ctx context.Context) error {
	if !j.hasWorkers {
		return nil
	}
	// River closes subscriptions when all jobs have ended and their results are recorded. Queues are never paused here,
	// so the subscription has no events.
	events, cancel := j.client.Subscribe(river.EventKindQueuePaused)
	if err := j.client.Start(context.WithoutCancel(ctx)); err != nil {
		cancel()
		return fmt.Errorf("start background jobs: %w", err)
	}
	go func() {
		defer close(j.drained)
		for range events {
		}
	}()
	return nil
}

// Stopping returns a channel that is closed when Stop begins. Jobs that run as long as there is work should then
// finish.
func (j *Jobs) Stopping() <-chan struct{} { return j.stopping }

// Stop claims no more jobs and waits for the running ones. When ctx ends it cancels them; they are retried after
// the next start. It returns an error if some did not end even then. Without Start it does nothing.
func (j *Jobs) Stop(ctx context.Context) error {
	j.stop.Do(func() { close(j.stopping) })
	if err := j.end(ctx, j.client.Stop); err == nil {
		return nil
	}
	j.log.WarnContext(ctx, "background jobs are still running and are cancelled; they will be retried")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelGrace)
	defer cancel()
	if err := j.end(ctx, j.client.StopAndCancel); err != nil {
		return fmt.Errorf("background jobs did not end within %s of being cancelled: %w", cancelGrace, err)
	}
	return nil
}

// end waits for River to stop, but only riverStopGrace after all jobs have ended, because River v0.31.0 can hang.
// An elector that loses its leadership before the news of its election was received blocks, and holds the lock that
// its listener needs to unsubscribe. It has resigned by then, and no other work is left.
func (j *Jobs) end(ctx context.Context, stop func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-ctx.Done():
			return
		case <-j.drained:
		}
		leftover := time.NewTimer(riverStopGrace)
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
	case <-j.drained:
		j.log.DebugContext(ctx, "all background jobs have ended, but River has not stopped", "error", err)
		return nil
	default:
		return err
	}
}
