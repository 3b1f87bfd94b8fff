package ai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// leaseTime is how long a worker that is not heard of is taken to live, heartbeat how often it is heard of.
	leaseTime = 30 * time.Second
	heartbeat = 10 * time.Second
	// sweepInterval is how often what dead workers left is looked for.
	sweepInterval = 10 * time.Second
	// upkeepQueue is where that waits: it must run also when all workers wait for the model.
	upkeepQueue = "ai_upkeep"
	// maxRounds is how many workers may die with an analysis or a fix until it is taken to be the cause.
	maxRounds = 5
)

var (
	// errLost is the cause when a worker may not go on: another has its work, or its lease could not be kept.
	errLost = errors.New("the work is not this worker's any more")
	// errDied ends what no worker survives.
	errDied = errors.New("the server ended while it worked on it, again and again")
)

// claim extends the lease of a worker; it returns 0 when the work has ended or is another's.
type claim func(ctx context.Context, tx *ent.Tx, until int64) (int, error)

// hold takes work for a worker and keeps it until release is called; kept ends when the work is lost. It returns
// errLost when there is nothing to take.
func (a *Assistant) hold(ctx context.Context, extend claim) (kept context.Context, release func(), err error) {
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

// sweepArgs are the job that goes on with what dead workers left.
type sweepArgs struct{}

// Kind is the name in the queue.
func (sweepArgs) Kind() string { return "ai_sweep" }

// InsertOpts keep runs from piling up while no node works.
func (sweepArgs) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = upkeepQueue
	return opts
}

type sweepWorker struct {
	river.WorkerDefaults[sweepArgs]
	*Assistant
}

// Work enqueues anew what was taken by a worker that has died since, once for each death: the round tells the jobs
// apart.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[sweepArgs]) error {
	return errors.Join(
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

// enqueueLost goes through the jobs of one kind that a worker took and has not ended. next begins another round, unless
// the worker lives, the work has ended, or the round has begun already: then it returns 0.
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
