package ai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/aifix"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// leaseTime is the lease of a worker, heartbeat the interval of renewals.
	leaseTime = 30 * time.Second
	heartbeat = 10 * time.Second
	// sweepInterval is how often work of dead workers is looked for.
	sweepInterval = 10 * time.Second
	// upkeepQueue is the sweep's own queue: it must run even if all workers wait for the model.
	upkeepQueue = "ai_upkeep"
	// maxRounds is how many workers may die during an analysis or a fix before it is treated as the cause.
	maxRounds = 5
)

var (
	// errLost: another worker has the work, or the lease could not be renewed.
	errLost = errors.New("the work no longer belongs to this worker")
	// errDied ends work that has killed its workers repeatedly.
	errDied = errors.New("the server ended while it worked on it, again and again")
	// errAbandoned ends work whose job will never run again.
	errAbandoned = errors.New("its background job was stopped or lost")
)

// claim extends a worker's lease. It returns 0 if the work has ended or another worker has it.
type claim func(ctx context.Context, tx *ent.Tx, until int64) (int, error)

// holdLease acquires a lease and renews it until release is called. kept ends when the lease is lost. It returns
// errLost if there is nothing to acquire.
func (a *Assistant) holdLease(ctx context.Context, extend claim) (kept context.Context, release func(), err error) {
	until := time.Now().Add(leaseTime)
	if err := a.extend(ctx, extend, until); err != nil {
		return nil, nil, err
	}
	kept, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-kept.Done():
				return
			case now := <-tick.C:
				err := a.extend(kept, extend, now.Add(leaseTime))
				if errors.Is(err, errLost) || err != nil && time.Now().After(until) {
					cancel(errLost)
					return
				}
				if err == nil {
					until = now.Add(leaseTime)
				}
			}
		}
	}()
	return kept, func() { cancel(nil); <-ended }, nil
}

func (a *Assistant) extend(ctx context.Context, extend claim, until time.Time) error {
	return a.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := extend(ctx, tx, store.Micros(until))
		if err == nil && n == 0 {
			err = errLost
		}
		return err
	})
}

// sweepArgs is the job that recovers the work of dead workers.
type sweepArgs struct{}

// Kind is the name in the queue.
func (sweepArgs) Kind() string { return "ai_sweep" }

// InsertOpts keeps jobs from piling up while no node works.
func (sweepArgs) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = upkeepQueue
	return opts
}

type sweepWorker struct {
	river.WorkerDefaults[sweepArgs]
	*Assistant
	// stale is when this node has last looked for old work without a job, in Unix seconds.
	stale atomic.Int64
}

// Work enqueues the work of dead workers again, once per death: each job has another round. It ends work whose job will
// never run again.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[sweepArgs]) error {
	queue, now := jobs.FromContext(ctx), time.Now()
	var stale error
	if now.Unix()-w.stale.Load() >= int64(staleInterval/time.Second) {
		if stale = w.endStale(ctx, queue); stale == nil {
			w.stale.Store(now.Unix())
		}
	}
	return errors.Join(
		stale, w.endDropped(ctx, queue),
		enqueueLost(ctx, w.Assistant, func(ctx context.Context, tx *ent.Tx, args *analysisArgs, now int64) (int, error) {
			args.Round++
			return tx.AiAnalysis.Update().Where(aianalysis.ID(args.AnalysisID), aianalysis.Status(pending), aianalysis.Round(args.Round-1),
				aianalysis.Or(aianalysis.LeaseUntilIsNil(), aianalysis.LeaseUntilLT(now)),
			).AddRound(1).ClearLeaseUntil().Save(ctx)
		}),
		enqueueLost(ctx, w.Assistant, func(ctx context.Context, tx *ent.Tx, args *fixArgs, now int64) (int, error) {
			args.Round++
			return tx.AiFix.Update().Where(aifix.ID(args.FixID), aifix.Status(fixRequested), aifix.Round(args.Round-1),
				aifix.Or(aifix.LeaseUntilIsNil(), aifix.LeaseUntilLT(now)),
			).AddRound(1).ClearLeaseUntil().Save(ctx)
		}),
	)
}

// enqueueLost checks the jobs of one kind that a worker took and has not ended. next starts another round. It returns 0
// if the worker lives, the work has ended, or the round has begun already.
func enqueueLost[A interface {
	river.JobArgs
	deployment() int64
}](ctx context.Context, a *Assistant, next func(ctx context.Context, tx *ent.Tx, args *A, now int64) (int, error)) error {
	var kind A
	queue, now := jobs.FromContext(ctx), time.Now()
	lost, err := queue.Lost(ctx, kind.Kind(), now.Add(-leaseTime))
	if err != nil {
		return err
	}
	for _, raw := range lost {
		var args A
		if err := json.Unmarshal(raw, &args); err != nil {
			return fmt.Errorf("arguments of a lost job: %w", err)
		}
		err := a.store.Write(tenant.NewContext(ctx, args.deployment()), func(ctx context.Context, tx *ent.Tx) error {
			n, err := next(ctx, tx, &args, store.Micros(now))
			if err != nil || n == 0 {
				return err
			}
			return queue.Enqueue(ctx, args, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
